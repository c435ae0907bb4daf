// The first retry of a job comes after about a second, the tenth after about five minutes.
export const RETRY_BASE_MS = 1000
export const MAX_RETRY_MS = 300_000

/** Returns the delay before the nth retry: `first`, doubled with each one up to `max`, and varied by a quarter. */
export const computeBackoff = (first: number, n: number, max: number): number =>
  Math.min(first * 2 ** (n - 1), max) * (0.75 + Math.random() / 2)
