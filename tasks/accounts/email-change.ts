import { z } from 'zod'
import { SIDES } from '../../sql/accounts/email-changes.ts'
import { defineTask, lazily } from '../task.ts'

/** Mails one of the two addresses of a change how to confirm it; nothing when the change is over. */
export const emailChange = defineTask({
  name: 'accounts.email-change',
  queue: 'accounts',
  pool: 'io',
  payload: z.strictObject({ account_id: z.int(), change_id: z.uuid(), side: z.enum(SIDES) }),
  result: z.strictObject({}),
  links: ({ account_id }) => [{ kind: 'account', id: account_id }],
  tries: 8,
  timeoutSeconds: 60,
  run: lazily(() => import('./email-change-run.ts')),
})
