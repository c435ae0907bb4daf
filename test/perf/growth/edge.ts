import { SERVICES } from '../../every-service.ts'

/** The settings of an edge whose reads are measured. */
export const EDGE_SETTINGS = {
  ...SERVICES,
  // A read that takes long is measured, not cut off.
  READ_TIMEOUT_SECONDS: '3600',
  // What ended in the last 20 hours is shown.
  WORKER_KEEP_RESULT_SECONDS: '86400',
}
