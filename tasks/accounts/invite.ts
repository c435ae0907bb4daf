import { z } from 'zod'
import { defineTask, lazily } from '../task.ts'

/** Mails an invite: how to accept it, or that the account is already a member. Sends nothing for one that has ended. */
export const invite = defineTask({
  name: 'accounts.invite',
  queue: 'accounts',
  pool: 'io',
  payload: z.strictObject({ invite_id: z.int() }),
  result: z.strictObject({}),
  tries: 8,
  timeoutSeconds: 60,
  run: lazily(() => import('./invite-run.ts')),
})
