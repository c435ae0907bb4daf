import type { Caller } from './caller.ts'

/** A simulated user's actions in one area, and the invariants that must hold after the last fault. */
export interface Area {
  /** Runs one complete action of a user. */
  act(): Promise<void>
  /** Checks the invariants; returns a sentence for each violation. */
  judge(): Promise<string[]>
}

/** Creates an area from callers for an administrator and for an account without a role. */
export type MakeArea = (admin: Caller, user: Caller) => Area

/** Number of occurrences of each word. */
export function tally(words: readonly string[]): Map<string, number> {
  return new Map([...Map.groupBy(words, (word) => word)].map(([word, all]) => [word, all.length]))
}

/** A sentence for each wanted word that `found` does not contain exactly once. */
export function findNotOnce(what: string, wanted: readonly string[], found: readonly string[]): string[] {
  const counts = tally(found)
  return wanted.flatMap((one) => {
    const count = counts.get(one) ?? 0
    return count === 1 ? [] : [`${what} ${one} exists ${count} times`]
  })
}
