/** How tasks that index run. */
export const INDEXING = {
  queue: 'rag',
  pool: 'children',
  timeoutSeconds: 6 * 3600,
  // A file takes seconds, a scanned PDF minutes.
  stallSeconds: 1800,
} as const
