// Filters of the list of jobs, in the address of a job's page, for its link back. The pages send no referrer.

export const LIST_HASH = '#list?'

/** Returns the hash with the current filters; empty without filters. */
export const listHash = () => (location.search === '' ? '' : LIST_HASH + location.search.slice(1))
