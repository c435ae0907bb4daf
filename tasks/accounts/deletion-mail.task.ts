import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'

/** Emails an account the date of its deletion. Sends nothing if the deletion was revoked or is done. */
export const sendDeletionMail = defineTask({
  name: 'accounts.deletion-mail',
  queue: 'accounts',
  pool: 'io',
  payload: z.strictObject({ account_id: z.int() }),
  result: z.strictObject({}),
  links: ({ account_id }) => [{ kind: 'account', id: account_id }],
  tries: 8,
  timeoutSeconds: 60,
  run: loadLazily(() => import('./deletion-mail.work.ts')),
})
