import { z } from 'zod'
import { defineTask, lazily } from '../task.ts'

/** What the mailboxes of deletions begin with, before the account's id. */
export const DELETIONS = 'account_deletion:'

/**
 * Deletes an account that is due: its running subscriptions end at the provider first, and while the provider does not say
 * so, the account stays. Housekeeping adds it again for as long as the account is due, an hour after it has failed.
 */
export const deleteDue = defineTask({
  name: 'accounts.delete',
  queue: 'accounts',
  pool: 'io',
  actor: ({ account_id }) => `${DELETIONS}${account_id}`,
  whenBusy: 'join',
  payload: z.strictObject({ account_id: z.int() }),
  /** False: it was not due, or is gone already. */
  result: z.strictObject({ deleted: z.boolean() }),
  links: ({ account_id }) => [{ kind: 'account', id: account_id }],
  tries: 8,
  timeoutSeconds: 300,
  run: lazily(() => import('./delete-run.ts')),
})
