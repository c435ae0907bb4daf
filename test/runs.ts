/** How far the tests of chance go: as far as each change needs, or in `npm run test:long` for hours. */

export const LONG = process.env.TEST_LONG === '1'

/** Where chance begins. The run says it, and `TEST_SEED` gives it again. */
export const SEED = Number(process.env.TEST_SEED ?? Date.now() % 2 ** 31)

/** What a bomb may compute in ms, so that each has gone off in time, or long enough to see which goes off at all. */
export const BOMB_CPU_MS = LONG ? 2000 : 200

/** fast-check's parameters of a property: 100 runs, or 10,000. What costs much has fewer. */
export const runs = (quick = 100): { numRuns: number; seed: number } => ({
  numRuns: LONG ? quick * 100 : quick,
  seed: SEED,
})
