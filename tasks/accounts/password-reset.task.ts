import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'
import { linkFields } from './links.ts'

/**
 * Emails a token to set a new password if the address has an active account. The result does not reveal whether such an
 * account exists.
 */
export const sendPasswordResetMail = defineTask({
  name: 'accounts.password-reset',
  queue: 'accounts',
  pool: 'io',
  payload: z.strictObject({ email: z.string(), ...linkFields }),
  result: z.strictObject({}),
  tries: 8,
  timeoutSeconds: 60,
  run: loadLazily(() => import('./password-reset.work.ts')),
})
