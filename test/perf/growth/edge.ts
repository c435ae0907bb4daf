import { SECRET } from '../../edge/harness.ts'
import { ALL_SERVICES_ENV } from '../../every-service.ts'

/** Settings of the measured edge. */
export const EDGE_SETTINGS = {
  ...ALL_SERVICES_ENV,
  // Tokens in paths are derived from it.
  SECRET_KEY: SECRET,
  OIDC_ISSUER: 'http://127.0.0.1:9',
  OIDC_CLIENT_ID: 'mill',
  // Slow reads are measured, not aborted.
  READ_TIMEOUT_SECONDS: '3600',
  // Keeps the seeded jobs visible, which ended up to 20 hours ago.
  WORKER_KEEP_RESULT_SECONDS: '86400',
}
