import type { Cost } from './measure.ts'

/** Limits for the growth of a call's cost with the size of the tables. */

export const LIMIT = 3
/** A known call stays on the list above this factor. Between the two limits both are accepted, because plans vary. */
export const FIXED_GROWTH = 2
// Buffers of a page of rows that are fetched one by one. Below this, a table is too small for its index to be used.
const FLOOR = 30

export const growthOf = (small: Cost, large: Cost): number => large.buffers / Math.max(FLOOR, small.buffers)
/** Maximum buffers of the larger size. */
export const maxAt = (small: Cost): number => LIMIT * Math.max(FLOOR, small.buffers)
