import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'

/** Emails an admin that an account was deleted although its subscriptions could not be cancelled. */
export const sendForcedDeletionMail = defineTask({
  name: 'accounts.forced-deletion-mail',
  queue: 'accounts',
  pool: 'io',
  payload: z.strictObject({
    admin_id: z.int(),
    /** The deleted account. */
    account_id: z.int(),
    /** Ids of the payment provider. */
    subscriptions: z.array(z.string()),
  }),
  result: z.strictObject({}),
  links: ({ admin_id }) => [{ kind: 'account', id: admin_id }],
  tries: 8,
  timeoutSeconds: 60,
  run: loadLazily(() => import('./forced-deletion-mail.work.ts')),
})
