import type { Caller } from './caller.ts'

/** What users do in one area of the service, and what has to hold of it when all is quiet. */
export interface Area {
  /** One thing that a user does, from its beginning to its end. */
  act(): Promise<void>
  /** What does not hold, in words. */
  judge(): Promise<string[]>
}

/** An area of an administrator and of an account without a role. */
export type MakeArea = (admin: Caller, user: Caller) => Area

/** How often each is there. */
export function tally(words: readonly string[]): Map<string, number> {
  return new Map([...Map.groupBy(words, (word) => word)].map(([word, all]) => [word, all.length]))
}

/** Which of these are not there exactly once. */
export function notOnce(what: string, wanted: readonly string[], found: readonly string[]): string[] {
  const counts = tally(found)
  return wanted.flatMap((one) => {
    const count = counts.get(one) ?? 0
    return count === 1 ? [] : [`${what} ${one} is there ${count} times`]
  })
}
