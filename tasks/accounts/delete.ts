import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'

/** Prefix of the mailboxes of deletions, before the account's id. */
export const DELETION_MAILBOX_PREFIX = 'account_deletion:'

/**
 * Deletes an account whose deletion is due. It first cancels running subscriptions at the provider; the account stays
 * until the provider confirms. After a failure, the pruner adds the job again an hour later while the account is due.
 */
export const deleteDue = defineTask({
  name: 'accounts.delete',
  queue: 'accounts',
  pool: 'io',
  actor: ({ account_id }) => `${DELETION_MAILBOX_PREFIX}${account_id}`,
  whenBusy: 'join',
  payload: z.strictObject({ account_id: z.int() }),
  /** False if the account was not due or is already gone. */
  result: z.strictObject({ deleted: z.boolean() }),
  links: ({ account_id }) => [{ kind: 'account', id: account_id }],
  tries: 8,
  timeoutSeconds: 300,
  run: loadLazily(() => import('./delete-run.ts')),
})
