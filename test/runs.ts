/**
 * The depth of randomized tests: `quick` in `npm test`, `fixed` with a fixed seed in `npm run test:fixed`, `long` for hours in
 * `npm run test:long`.
 */
export type Depth = 'quick' | 'fixed' | 'long'

export const DEPTH = (process.env.TEST_DEPTH ?? 'quick') as Depth
export const LONG = DEPTH === 'long'

/** The random seed. The run prints it; `TEST_SEED` repeats it. */
export const SEED = Number(process.env.TEST_SEED ?? Date.now() % 2 ** 31)

/** CPU limit of a bomb in ms: short, or long enough to show which bombs exceed it at all. */
export const BOMB_CPU_MS = LONG ? 2000 : 200

const QUICK_RUNS = 20
const LONG_FACTOR = 100

/** fast-check's parameters of a property: at most 20 runs in `npm test`, `fixed` runs or 100 times as many elsewhere. */
export const runs = (fixed = 100): { numRuns: number; seed: number } => ({
  numRuns: LONG ? fixed * LONG_FACTOR : DEPTH === 'fixed' ? fixed : Math.min(fixed, QUICK_RUNS),
  seed: SEED,
})

/** Repetitions of a race: half of `fixed` in `npm test`, ten times as many in a long run. */
export const rounds = (fixed: number): number =>
  LONG ? 10 * fixed : DEPTH === 'fixed' ? fixed : Math.ceil(fixed / 2)
