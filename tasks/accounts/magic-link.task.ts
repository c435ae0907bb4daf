import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'
import { linkFields } from './links.ts'

/**
 * Emails a link that signs in if the address has an active account. The result does not reveal whether such an account
 * exists.
 */
export const sendMagicLink = defineTask({
  name: 'accounts.magic-link',
  queue: 'accounts',
  pool: 'io',
  payload: z.strictObject({ email: z.string(), ...linkFields }),
  result: z.strictObject({}),
  tries: 8,
  timeoutSeconds: 60,
  run: loadLazily(() => import('./magic-link.work.ts')),
})
