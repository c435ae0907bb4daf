/** Options that all indexing tasks share. */
export const INDEXING_OPTIONS = {
  queue: 'rag',
  pool: 'children',
  timeoutSeconds: 6 * 3600,
  // Indexing a file takes seconds, a scanned PDF minutes.
  stallSeconds: 1800,
} as const
