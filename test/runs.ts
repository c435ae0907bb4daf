/**
 * Depth of randomized tests: `quick` in `npm test`, `fixed` with a fixed seed in `npm run test:fixed`, `long` for hours
 * in `npm run test:long`.
 */
export type Depth = 'quick' | 'fixed' | 'long'

export const DEPTH = (process.env.TEST_DEPTH ?? 'quick') as Depth
export const IS_LONG = DEPTH === 'long'

/** Random seed. Each run prints its seed; `TEST_SEED` repeats that run. */
export const SEED = Number(process.env.TEST_SEED ?? Date.now() % 2 ** 31)

/** CPU limit of a bomb in ms. Long runs allow more, to find the bombs that exceed any limit. */
export const BOMB_CPU_MS = IS_LONG ? 2000 : 200

const QUICK_RUNS = 20
const LONG_FACTOR = 100

/**
 * Returns fast-check's options for a property. The property runs at most 20 times in `npm test`, `fixed` times with a
 * fixed seed, and 100 times as often in a long run.
 */
export const createRunOptions = (fixed = 100): { numRuns: number; seed: number } => ({
  numRuns: IS_LONG ? fixed * LONG_FACTOR : DEPTH === 'fixed' ? fixed : Math.min(fixed, QUICK_RUNS),
  seed: SEED,
})

/** Returns the number of repetitions of a race: half of `fixed` in `npm test`, ten times `fixed` in a long run. */
export const countRounds = (fixed: number): number =>
  IS_LONG ? 10 * fixed : DEPTH === 'fixed' ? fixed : Math.ceil(fixed / 2)

/** Returns the time limit in ms of a randomized test: 100 times `ms` in a long run, which has up to 100 times the runs. */
export const scaleTimeout = (ms: number): number => (IS_LONG ? LONG_FACTOR * ms : ms)
