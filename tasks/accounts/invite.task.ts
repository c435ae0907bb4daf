import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'
import { linkFields } from './links.ts'

/**
 * Emails an invite with a link to accept it, or a notice that the account is already a member. Sends nothing if the
 * invite was revoked or has expired.
 */
export const sendInviteMail = defineTask({
  name: 'accounts.invite',
  queue: 'accounts',
  pool: 'io',
  payload: z.strictObject({ invite_id: z.int(), ...linkFields }),
  result: z.strictObject({}),
  tries: 8,
  timeoutSeconds: 60,
  run: loadLazily(() => import('./invite.work.ts')),
})
