import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'

/**
 * Emails a token that sets a new password, if the address has an active account; the result is the same without one.
 */
export const passwordReset = defineTask({
  name: 'accounts.password-reset',
  queue: 'accounts',
  pool: 'io',
  payload: z.strictObject({ email: z.string() }),
  result: z.strictObject({}),
  tries: 8,
  timeoutSeconds: 60,
  run: loadLazily(() => import('./password-reset-run.ts')),
})
