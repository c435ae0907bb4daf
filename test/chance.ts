/** Repeatable random choices from a seed. */
export interface Chance {
  /** Returns a number from 0 (inclusive) to 1 (exclusive). */
  next(): number
  /** Returns an integer from `from` to `to`, both inclusive. */
  between(from: number, to: number): number
  pick<T>(from: readonly T[]): T
  /** Returns true with a probability of `share`. */
  isHit(share: number): boolean
}

/**
 * Creates a Mulberry32 generator, which is good enough for tests
 * (https://gist.github.com/tommyettinger/46a874533244883189143505d203312c).
 */
export function createChance(seed: number): Chance {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let x = state
    x = Math.imul(x ^ (x >>> 15), x | 1)
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61)
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32
  }
  const between = (from: number, to: number): number => from + Math.floor(next() * (to - from + 1))
  return {
    next,
    between,
    pick: (from) => from[between(0, from.length - 1)]!,
    isHit: (share) => next() < share,
  }
}
