import { findInviteMail } from '../../sql/orgs/invites.ts'
import type { TaskContext } from '../context.ts'
import { composeInviteEmail, composeMemberAddedEmail } from './invite-emails.ts'
import { mailUnsolicited } from './mail.ts'
import { inviteTokenOf } from './tokens.ts'

/** Runs `accounts.invite`. */
export async function run(
  ctx: TaskContext,
  { invite_id, redirect_to }: { readonly invite_id: number; readonly redirect_to?: string | undefined },
): Promise<Record<string, never>> {
  const { db, settings, keys } = ctx
  const found = await db.maybeOne(findInviteMail(invite_id))
  if (found === null || (found.status !== 'pending' && found.status !== 'accepted')) return {}
  const { email, role, organization, invited_by: invitedBy } = found
  const to = { email, role, organization, invitedBy }
  const token = inviteTokenOf(keys, invite_id, email)
  const target = { base: settings.publicBaseUrl, redirectTo: redirect_to }
  const days = settings.inviteTokenSeconds / 86_400
  const mail =
    found.status === 'accepted' ? composeMemberAddedEmail(to) : composeInviteEmail(to, target, token, days)
  await mailUnsolicited(ctx, email, mail, settings.inviteTokenSeconds)
  return {}
}
