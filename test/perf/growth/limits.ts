import type { Cost } from './measure.ts'

/** How much more a call may cost on a bigger table. */

export const LIMIT = 3
/** A known offender stays on the list above this; what is between the two may be either, as the planner likes. */
export const REFORMED = 2
// What a page of rows costs that are found one by one: below it, a table is just too small for its index to be used.
const FLOOR = 30

export const growthOf = (small: Cost, large: Cost): number => large.buffers / Math.max(FLOOR, small.buffers)
/** The most buffers that are no offence. */
export const maxAt = (small: Cost): number => LIMIT * Math.max(FLOOR, small.buffers)
