import { z } from 'zod'
import { insertMailedToken, recipientByEmail } from '../../sql/accounts.ts'
import { defineTask } from '../task.ts'
import { resetLetter } from './letters.ts'
import { digestOf, mailedTokenOf } from './tokens.ts'

/** Mails a token that sets a new password, if the address has an active account; its end does not tell whether. */
export const passwordReset = defineTask({
  name: 'accounts.password-reset',
  queue: 'accounts',
  pool: 'io',
  payload: z.strictObject({ email: z.string() }),
  result: z.strictObject({}),
  tries: 8,
  timeoutSeconds: 60,
  run: async ({ db, job, settings, secretKey, providers, signal }, { email }) => {
    const to = await db.maybeOne(recipientByEmail(email))
    if (to === null || !to.is_active) return {}
    const token = mailedTokenOf(secretKey, 'reset', job.id)
    const stored = insertMailedToken(job.id, to.id, 'reset', digestOf(token), settings.resetTokenSeconds)
    if ((await db.maybeOne(stored)) === null) return {}
    const minutes = settings.resetTokenSeconds / 60
    const letter = resetLetter(to, settings.publicBaseUrl, token, minutes)
    await providers.sendEmail({ id: job.id, to: [to.email], ...letter }, signal)
    return {}
  },
})
