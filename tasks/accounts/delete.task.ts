import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'

/** Prefix of deletion mailboxes, followed by the account's id. */
export const DELETION_MAILBOX_PREFIX = 'account_deletion:'

/**
 * Deletes an account whose deletion is due. First cancels running subscriptions at the provider; the account stays
 * until the provider confirms, but at most for a week. If the job fails and the account is still due, the pruner adds
 * another job an hour later.
 */
export const deleteDueAccount = defineTask({
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
  run: loadLazily(() => import('./delete.work.ts')),
})
