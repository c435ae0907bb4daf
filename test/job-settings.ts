import { QUOTA_KINDS, QUOTA_NAMES, type Quotas } from '../sql/quotas/quotas.ts'
import type { JobSettings } from '../tasks/task.ts'

export const DEFAULT_QUOTAS = Object.fromEntries(
  QUOTA_NAMES.map((kind) => [kind, QUOTA_KINDS[kind].quota]),
) as Quotas

/** Returns job settings with default quotas and this maximum of tries. */
export const createJobSettings = (workerMaxTries = 3): JobSettings => ({
  quotas: DEFAULT_QUOTAS,
  workerMaxTries,
})
