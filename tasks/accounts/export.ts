import { z } from 'zod'
import { defineTask, lazily } from '../task.ts'

export const Exported = z.strictObject({
  /** That of the job. */
  export_id: z.uuid(),
  byte_size: z.int(),
})
export type Exported = z.output<typeof Exported>

/**
 * Packs all that an account has into a zip archive and stores it; one at a time for an account. An attempt that is cut short
 * leaves nothing, and the next one begins anew.
 */
export const exportAccount = defineTask({
  name: 'accounts.export',
  queue: 'accounts',
  // Not that it computes much: each holds parts of files in memory, so that few may run at once.
  pool: 'cpu',
  actor: ({ account_id }) => `account_export:${account_id}`,
  whenBusy: 'join',
  payload: z.strictObject({ account_id: z.int() }),
  result: Exported,
  links: ({ account_id }) => [{ kind: 'account', id: account_id }],
  timeoutSeconds: 6 * 3600,
  run: lazily(() => import('./export-run.ts')),
})
