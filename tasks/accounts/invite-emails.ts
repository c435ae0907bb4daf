import { buildTokenUrl, composeEmail, type Email, type LinkTarget } from './emails.ts'
import { toPlainName } from './plain-name.ts'

export interface Invitation {
  readonly email: string
  readonly organization: string
  readonly role: string
  readonly invitedBy: string | null
}

/** Returns the email that invites an address without an account. */
export function composeInviteEmail(
  invite: Invitation,
  target: LinkTarget,
  token: string,
  days: number,
): Email {
  const organization = toPlainName(invite.organization)
  const by = invite.invitedBy === null ? 'You are invited' : `${toPlainName(invite.invitedBy)} invites you`
  const link = buildTokenUrl(target, 'accept-invite', token)
  return composeEmail({
    template: 'account.invite',
    values: {
      organization,
      invited_by: invite.invitedBy && toPlainName(invite.invitedBy),
      role: invite.role,
      email: invite.email,
      link,
      token,
      days,
    },
    subject: `You are invited to ${organization}`,
    greeting: null,
    before: [
      `${by} to join ${organization} as ${invite.role}. Register or sign in with the address ${invite.email} to accept.`,
    ],
    link: { label: 'Accept the invite', url: link },
    token,
    after: [`This link is valid for ${days} ${days === 1 ? 'day' : 'days'}.`],
  })
}

/** Returns the email to an account that an invite has made a member. */
export function composeMemberAddedEmail(invite: Invitation): Email {
  const organization = toPlainName(invite.organization)
  const by = invite.invitedBy === null ? '' : ` by ${toPlainName(invite.invitedBy)}`
  return composeEmail({
    template: 'account.member-added',
    values: {
      organization,
      invited_by: invite.invitedBy && toPlainName(invite.invitedBy),
      role: invite.role,
      email: invite.email,
    },
    subject: `You are a member of ${organization}`,
    greeting: null,
    before: [`Your account ${invite.email} was added to ${organization} as ${invite.role}${by}.`],
    link: null,
    token: null,
    after: [],
  })
}
