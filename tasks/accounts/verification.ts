import { z } from 'zod'
import { insertMailedToken, recipientById } from '../../sql/accounts.ts'
import { defineTask } from '../task.ts'
import { verificationLetter } from './letters.ts'
import { digestOf, mailedTokenOf } from './tokens.ts'

/** Mails a token that verifies the address of an account. */
export const verification = defineTask({
  name: 'accounts.verification',
  queue: 'accounts',
  pool: 'io',
  payload: z.strictObject({ account_id: z.int() }),
  result: z.strictObject({}),
  tries: 8,
  timeoutSeconds: 60,
  run: async ({ db, job, settings, secretKey, providers, signal }, { account_id }) => {
    const to = await db.maybeOne(recipientById(account_id))
    if (to === null || to.is_verified) return {}
    // The job's own id: a repeated attempt mails the same token, in the same message.
    const token = mailedTokenOf(secretKey, 'verify', job.id)
    const stored = insertMailedToken(job.id, to.id, 'verify', digestOf(token), settings.verifyTokenSeconds)
    if ((await db.maybeOne(stored)) === null) return {}
    const hours = settings.verifyTokenSeconds / 3600
    const letter = verificationLetter(to, settings.publicBaseUrl, token, hours)
    await providers.sendEmail({ id: job.id, to: [to.email], ...letter }, signal)
    return {}
  },
})
