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

/** The same value for each of these rows: how many there are of it. */
export function tally<T>(rows: readonly T[], key: (row: T) => string): Map<string, number> {
  const counts = new Map<string, number>()
  for (const row of rows) counts.set(key(row), (counts.get(key(row)) ?? 0) + 1)
  return counts
}

/** Which of these are not there exactly once. */
export function notOnce(what: string, wanted: readonly string[], found: readonly string[]): string[] {
  const counts = tally(found, (one) => one)
  return wanted.flatMap((one) => {
    const count = counts.get(one) ?? 0
    return count === 1 ? [] : [`${what} ${one} is there ${count} times`]
  })
}
