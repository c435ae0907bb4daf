import { z } from 'zod'
import { invitation } from '../../sql/orgs.ts'
import { defineTask } from '../task.ts'
import { addedLetter, inviteLetter } from './letters.ts'
import { inviteTokenOf } from './tokens.ts'

/** Mails an invite: how to accept it, or that its account is a member by now. Of one that is over, nothing is sent. */
export const invite = defineTask({
  name: 'accounts.invite',
  queue: 'accounts',
  pool: 'io',
  payload: z.strictObject({ invite_id: z.int() }),
  result: z.strictObject({}),
  tries: 8,
  timeoutSeconds: 60,
  run: async ({ db, job, settings, secretKey, providers, signal }, { invite_id }) => {
    const found = await db.maybeOne(invitation(invite_id))
    if (found === null || (found.status !== 'pending' && found.status !== 'accepted')) return {}
    const { email, role, organization, invited_by: invitedBy } = found
    const to = { email, role, organization, invitedBy }
    const token = inviteTokenOf(secretKey, invite_id, email)
    const days = settings.inviteTokenSeconds / 86_400
    const letter =
      found.status === 'accepted' ? addedLetter(to) : inviteLetter(to, settings.publicBaseUrl, token, days)
    await providers.sendEmail({ id: job.id, to: [email], ...letter }, signal)
    return {}
  },
})
