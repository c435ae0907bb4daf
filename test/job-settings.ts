import { QUOTA_KINDS, QUOTA_NAMES, type Quotas } from '../sql/quotas/quotas.ts'
import type { Settings } from '../tasks/platform/settings/settings.ts'
import type { JobSettings } from '../tasks/task.ts'

export const DEFAULT_QUOTAS = Object.fromEntries(
  QUOTA_NAMES.map((kind) => [kind, QUOTA_KINDS[kind].quota]),
) as Quotas

/** Returns job settings with default quotas and this maximum of tries. */
export const createJobSettings = (workerMaxTries = 3): JobSettings & Pick<Settings, 'jobRetention'> => ({
  jobRetention: [3600, 604_800],
  quotas: DEFAULT_QUOTAS,
  workerMaxTries,
})
