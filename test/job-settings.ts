import { QUOTA_KINDS, QUOTA_NAMES, type Quotas } from '../sql/quotas.ts'
import type { JobSettings } from '../tasks/task.ts'

/** The quotas of a deployment without quota settings. */
export const DEFAULT_QUOTAS = Object.fromEntries(
  QUOTA_NAMES.map((kind) => [kind, QUOTA_KINDS[kind].quota]),
) as Quotas

/** Job settings with this many attempts. */
export const jobSettings = (workerMaxTries = 3): JobSettings => ({ quotas: DEFAULT_QUOTAS, workerMaxTries })
