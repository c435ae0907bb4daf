import type { Caller } from './caller.ts'

/** Actions of simulated users in one area, and the invariants that must hold after the last fault. */
export interface Area {
  /** Performs one complete action of a user. */
  act(): Promise<void>
  /** Checks the invariants and returns a sentence for each violation. */
  judge(): Promise<string[]>
}

/** Creates an area. The first caller is an administrator, the second an account without a role. */
export type MakeArea = (admin: Caller, user: Caller) => Area

/** Counts the occurrences of each word. */
export function countWords(words: readonly string[]): Map<string, number> {
  return new Map([...Map.groupBy(words, (word) => word)].map(([word, all]) => [word, all.length]))
}

/** Returns a sentence for each wanted word that `found` does not contain exactly once. */
export function findMissingOrDuplicate(
  what: string,
  wanted: readonly string[],
  found: readonly string[],
): string[] {
  const counts = countWords(found)
  return wanted.flatMap((one) => {
    const count = counts.get(one) ?? 0
    return count === 1 ? [] : [`${what} ${one} exists ${count} times`]
  })
}
