import type { AdminSettings } from '../edge/admin/commands.ts'
import { QUOTA_KINDS, QUOTA_NAMES, type Quotas } from '../sql/quotas/quotas.ts'
import { parseSettings, type Settings } from '../tasks/platform/settings/settings.ts'
import type { JobSettings } from '../tasks/task.ts'
import { KEY_MATERIAL } from './keys.ts'

export const DEFAULT_QUOTAS = Object.fromEntries(
  QUOTA_NAMES.map((kind) => [kind, QUOTA_KINDS[kind].quota]),
) as Quotas

/** Returns job settings with default quotas and this maximum of tries. */
export const createJobSettings = (workerMaxTries = 3): JobSettings & Pick<Settings, 'jobRetention'> => ({
  jobRetention: [3600, 604_800],
  quotas: DEFAULT_QUOTAS,
  workerMaxTries,
})

/** Returns settings of `npm run admin` with default values and the keys of tests. */
export const createAdminSettings = (secrets: readonly string[] = KEY_MATERIAL.secrets): AdminSettings => ({
  ...parseSettings({ NODE_ENV: 'test' }),
  ...createJobSettings(),
  secretKey: secrets[0],
  secretKeysPrevious: secrets.slice(1),
})
