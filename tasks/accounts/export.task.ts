import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'

export const ExportResult = z.strictObject({
  /** Id of the export, equal to the id of its job. */
  export_id: z.uuid(),
  byte_size: z.int(),
})

/**
 * Packs all data of an account into a zip archive and stores it. Only one such job per account exists at a time. An
 * interrupted attempt leaves nothing behind, and the next one starts over.
 */
export const exportAccount = defineTask({
  name: 'accounts.export',
  queue: 'accounts',
  // The job needs little CPU but holds parts of files in memory. The pool `cpu` limits the number of concurrent
  // exports.
  pool: 'cpu',
  actor: ({ account_id }) => `account_export:${account_id}`,
  whenBusy: 'join',
  payload: z.strictObject({ account_id: z.int() }),
  result: ExportResult,
  links: ({ account_id }) => [{ kind: 'account', id: account_id }],
  timeoutSeconds: 6 * 3600,
  run: loadLazily(() => import('./export.work.ts')),
})
