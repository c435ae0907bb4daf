import { z } from 'zod'
import { defineTask, lazily } from '../task.ts'

const Purged = z.strictObject({
  accounts: z.int(),
  organizations: z.int(),
  /** Rows that were deleted, or that refer to them no longer. */
  rows: z.int(),
})
export type Purged = z.output<typeof Purged>

/** Deletes what belongs to deleted accounts and organizations, and their own rows last. */
export const purgeAccounts = defineTask({
  name: 'accounts.purge',
  queue: 'accounts',
  pool: 'io',
  actor: () => 'accounts.purge',
  payload: z.strictObject({}),
  result: Purged,
  run: lazily(() => import('./purge-run.ts')),
})
