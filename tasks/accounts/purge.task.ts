import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'

const PurgeResult = z.strictObject({
  accounts: z.int(),
  organizations: z.int(),
  /** Number of rows that were deleted or that no longer refer to a deleted account or organization. */
  rows: z.int(),
})

/** Deletes the data of deleted accounts and organizations, and finally their own rows. */
export const purgeAccounts = defineTask({
  name: 'accounts.purge',
  queue: 'accounts',
  pool: 'io',
  actor: () => 'accounts.purge',
  payload: z.strictObject({}),
  result: PurgeResult,
  run: loadLazily(() => import('./purge.work.ts')),
})
