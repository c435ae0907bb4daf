import type { Cost } from './measure.ts'

/** Limits for the growth of a call's cost with the size of the tables. */

export const LIMIT = 3
/**
 * A known call stays listed while its cost grows by more than this factor. Between the two limits both are accepted,
 * because plans vary.
 */
export const FIXED_GROWTH = 2
// Number of buffers of a page of rows that are fetched one by one. A table with fewer is too small for its index to be
// used.
const FLOOR = 30

export const growthOf = (small: Cost, large: Cost): number => large.buffers / Math.max(FLOOR, small.buffers)
/** Returns the maximum number of buffers at the larger size. */
export const maxAt = (small: Cost): number => LIMIT * Math.max(FLOOR, small.buffers)
