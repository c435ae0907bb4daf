import { SERVICES } from '../../every-service.ts'

/** Settings of an edge whose reads are measured. */
export const EDGE_SETTINGS = {
  ...SERVICES,
  // Slow reads are measured instead of aborted.
  READ_TIMEOUT_SECONDS: '3600',
  // Keeps the seeded jobs visible, which ended within the last 20 hours.
  WORKER_KEEP_RESULT_SECONDS: '86400',
}
