import type { Cost } from './measure.ts'

/** Limits for the growth of a call's cost with the size of the tables. */

export const MAX_GROWTH = 3
/**
 * A known call must stay listed while its cost grows by more than this factor. Between the two limits, a call may be
 * listed or not, because plans vary.
 */
export const FIXED_GROWTH = 2
// Number of buffers that a page of rows touches if its rows are fetched one by one. Tables with fewer buffers are too
// small for PostgreSQL to use their indexes.
const MIN_BUFFERS = 30

export const growthOf = (small: Cost, large: Cost): number =>
  large.buffers / Math.max(MIN_BUFFERS, small.buffers)
/** Returns the maximum number of buffers at the larger size. */
export const maxBuffers = (small: Cost): number => MAX_GROWTH * Math.max(MIN_BUFFERS, small.buffers)
