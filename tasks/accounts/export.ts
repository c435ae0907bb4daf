import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'

export const Exported = z.strictObject({
  /** The id of the job. */
  export_id: z.uuid(),
  byte_size: z.int(),
})
export type Exported = z.output<typeof Exported>

/**
 * Packs all data of an account into a zip archive and stores it; one job at a time per account. An attempt that is cut
 * short leaves nothing, and the next one starts over.
 */
export const exportAccount = defineTask({
  name: 'accounts.export',
  queue: 'accounts',
  // Needs little CPU, but each job holds parts of files in memory, so few may run concurrently.
  pool: 'cpu',
  actor: ({ account_id }) => `account_export:${account_id}`,
  whenBusy: 'join',
  payload: z.strictObject({ account_id: z.int() }),
  result: Exported,
  links: ({ account_id }) => [{ kind: 'account', id: account_id }],
  timeoutSeconds: 6 * 3600,
  run: loadLazily(() => import('./export-run.ts')),
})
