import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'
import { linkFields } from './links.ts'

/** Emails a token that verifies an account's address. */
export const sendVerification = defineTask({
  name: 'accounts.verification',
  queue: 'accounts',
  pool: 'io',
  payload: z.strictObject({ account_id: z.int(), ...linkFields }),
  result: z.strictObject({}),
  links: ({ account_id }) => [{ kind: 'account', id: account_id }],
  tries: 8,
  timeoutSeconds: 60,
  run: loadLazily(() => import('./verification.work.ts')),
})
