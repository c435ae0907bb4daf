/** What a list counts to: beyond that it says that there are at least as many. Counting all costs as much as there is. */
export const MOST_COUNTED = 10_000

/**
 * A subquery of one row with the number `n` of rows that match, at most one more than `MOST_COUNTED`. `found` is what follows
 * FROM, conditions included.
 */
export const counted = (found: string): string =>
  `(select count(*) as n from (select from ${found} limit ${MOST_COUNTED + 1}) matching)`

/** The fields `total` and `total_is_exact` of a list, for `json_build_object`, from the `n` of {@link counted}. */
export const TOTAL = `'total', least(n, ${MOST_COUNTED}), 'total_is_exact', n <= ${MOST_COUNTED}`
