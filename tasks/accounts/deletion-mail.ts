import { z } from 'zod'
import { defineTask, lazily } from '../task.ts'

/** Mails an account when it will be deleted; nothing when that was taken back, or done. */
export const deletionMail = defineTask({
  name: 'accounts.deletion-mail',
  queue: 'accounts',
  pool: 'io',
  payload: z.strictObject({ account_id: z.int() }),
  result: z.strictObject({}),
  links: ({ account_id }) => [{ kind: 'account', id: account_id }],
  tries: 8,
  timeoutSeconds: 60,
  run: lazily(() => import('./deletion-mail-run.ts')),
})
