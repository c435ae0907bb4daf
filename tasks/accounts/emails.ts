import { escaped } from '../markup-text.ts'
import { oneLine, plainName } from './plain-name.ts'

/** The emails about accounts and organizations: a text part, and the same as HTML. */
export interface Email {
  readonly subject: string
  readonly text: string
  readonly html: string
}

interface Link {
  readonly label: string
  readonly url: string
}

interface Content {
  readonly subject: string
  readonly greeting: string | null
  /** Paragraphs before and after the link. */
  readonly before: readonly string[]
  readonly link: Link | null
  /** What else can be done, with the same token. */
  readonly or?: Link
  /** What programs use instead of the link. */
  readonly token: string | null
  readonly after: readonly string[]
}

export interface Recipient {
  readonly email: string
  readonly full_name: string | null
}

/** The email that verifies an address. */
export function verificationEmail(to: Recipient, base: string, token: string, hours: number): Email {
  return compose({
    subject: 'Verify your address',
    greeting: to.full_name,
    before: [
      `An account was registered with the address ${to.email}. Please confirm that it is yours. Unless you are signed in to it there, or choose to keep them, its API keys, passkeys, one-time codes and webhook endpoints end.`,
    ],
    link: { label: 'Verify the address', url: link(base, 'verify-email', token) },
    token,
    after: [`This is ${validFor(hours)}. If it was not you, ignore this email.`],
  })
}

/** The email to the address that an account has, about to be given up for another one. */
export function oldAddressEmail(
  { name, address }: { readonly name: string | null; readonly address: string },
  base: string,
  token: string,
  hours: number,
): Email {
  return compose({
    subject: 'Confirm the change of your address',
    greeting: name,
    before: [
      `Somebody asked to change the address of your account to ${address}. It changes once both addresses have confirmed it.`,
    ],
    link: { label: 'Confirm the change', url: link(base, 'email-change', token) },
    or: { label: 'Refuse the change', url: link(base, 'email-change/refuse', token) },
    token,
    after: [
      `This is ${validFor(hours)}. If it was not you, refuse the change and set a new password: whoever asked for it was signed in as you.`,
    ],
  })
}

/** The email to the address that an account is to get. It names neither the account nor its owner, who may be mistaken. */
export function newAddressEmail(address: string, base: string, token: string, hours: number): Email {
  return compose({
    subject: 'Confirm your new address',
    greeting: null,
    before: [
      `Somebody asked to change the address of their account to ${address}. Please confirm that it is yours.`,
    ],
    link: { label: 'Confirm the address', url: link(base, 'email-change', token) },
    token,
    after: [`This is ${validFor(hours)}. If it was not you, ignore this email.`],
  })
}

/** The email to such an address that has an account of its own. */
export function addressInUseEmail(address: string): Email {
  return compose({
    subject: 'Your address has an account already',
    greeting: null,
    before: [
      `Somebody asked to change the address of their account to ${address}, which has an account of its own. Nothing changes.`,
    ],
    link: null,
    token: null,
    after: ['If it was you, delete that account, or change its address, and ask again.'],
  })
}

/** The email to an account that is to be deleted, at a time in UTC. */
export function deletionEmail({ email, full_name, at }: Recipient & { readonly at: string }): Email {
  return compose({
    subject: 'Your account will be deleted',
    greeting: full_name,
    before: [
      `Your account ${email} will be deleted on ${at} UTC, with all that belongs to it. Until then it works as before.`,
    ],
    link: null,
    token: null,
    after: [
      'To keep it, sign in before and take the deletion back: POST /api/v1/auth/me/restore. If it was not you who asked, set a new password as well.',
    ],
  })
}

const NOTICES = {
  key_created: ['An API key was made', 'An API key was made for your account', 'delete the key'],
  passkey_added: ['A passkey was added', 'A passkey was added to your account', 'delete the passkey'],
  passkey_deleted: ['A passkey was deleted', 'A passkey of your account was deleted', 'add it again'],
  totp_disabled: [
    'One-time codes are off',
    'One-time codes were switched off for your account',
    'switch them on again',
  ],
} as const

/** The email to an account of which a credential has changed; `name` is that of the credential. */
export function noticeEmail(
  { email, full_name }: Recipient,
  what: keyof typeof NOTICES,
  name: string | undefined,
): Email {
  const [subject, text, remedy] = NOTICES[what]
  return compose({
    subject,
    greeting: full_name,
    before: [`${text} ${email}${name === undefined ? '' : `: ${oneLine(name)}`}.`],
    link: null,
    token: null,
    after: [`If it was not you, set a new password, which ends all sessions, and ${remedy}.`],
  })
}

/** The email for setting a new password. */
export function resetEmail(to: Recipient, base: string, token: string, minutes: number): Email {
  return compose({
    subject: 'Set a new password',
    greeting: to.full_name,
    before: [
      `Somebody requested a new password for the account ${to.email}. Setting it ends all sessions, and unless you choose to keep them, API keys and the webhook endpoints that were added with them.`,
    ],
    link: { label: 'Set a new password', url: link(base, 'password-reset', token) },
    token,
    after: [
      `This is valid once, for ${minutes} ${minutes === 1 ? 'minute' : 'minutes'}. If it was not you, ignore this email: the password does not change.`,
    ],
  })
}

export interface Invitation {
  readonly email: string
  readonly organization: string
  readonly role: string
  readonly invitedBy: string | null
}

/** The email to somebody who has no account yet. */
export function inviteEmail(invite: Invitation, base: string, token: string, days: number): Email {
  const organization = plainName(invite.organization)
  const by = invite.invitedBy === null ? 'You are invited' : `${plainName(invite.invitedBy)} invites you`
  return compose({
    subject: `You are invited to ${organization}`,
    greeting: null,
    before: [
      `${by} to join ${organization} as ${invite.role}. Register with the address ${invite.email}, or sign in with it, and accept.`,
    ],
    link: { label: 'Accept the invite', url: link(base, 'accept-invite', token) },
    token,
    after: [`This is valid for ${days} ${days === 1 ? 'day' : 'days'}.`],
  })
}

/** The email to somebody who has an account and is already a member. */
export function addedEmail(invite: Invitation): Email {
  const organization = plainName(invite.organization)
  const by = invite.invitedBy === null ? '' : ` by ${plainName(invite.invitedBy)}`
  return compose({
    subject: `You are a member of ${organization}`,
    greeting: null,
    before: [`Your account ${invite.email} was added to ${organization} as ${invite.role}${by}.`],
    link: null,
    token: null,
    after: [],
  })
}

/** The email to the account of a webhook endpoint at which nothing arrives. */
export function webhookEmail(
  { full_name, url, failing_since }: { full_name: string | null; url: string; failing_since: string },
  id: number,
): Email {
  return compose({
    subject: 'A webhook endpoint was switched off',
    greeting: full_name,
    before: [
      `Nothing has arrived at your webhook endpoint ${id} since ${failing_since}, so it was switched off: ${oneLine(url)}`,
    ],
    link: null,
    token: null,
    after: [
      `What was not delivered is kept, and is sent when you activate it again: PATCH /api/v1/webhooks/${id} with {"is_active": true}.`,
    ],
  })
}

const validFor = (hours: number): string => `valid for ${hours} ${hours === 1 ? 'hour' : 'hours'}`

/** Tokens go after the `#`: browsers do not send the fragment, so they reach no log and no referrer. */
function link(base: string, page: string, token: string): string {
  return `${base}/${page}#token=${token}`
}

function compose({ subject, greeting, before, link, or, token, after }: Content): Email {
  const hello = `Hello${greeting === null ? '' : nameAsGiven(greeting)},`
  const byHand = token === null ? [] : [`For programs, the token is: ${token}`]
  const links = [link, or].filter((one) => one != null)
  const text = [hello, ...before, ...links.map(({ label, url }) => `${label}: ${url}`), ...byHand, ...after]
  const anchors = links.map(({ label, url }) => `<a href="${escaped(url)}">${escaped(label)}</a>`)
  const html = [hello, ...before].map(escaped).concat(anchors, [...byHand, ...after].map(escaped))
  return {
    subject,
    text: `${text.join('\n\n')}\n`,
    html: `<!doctype html><html lang="en"><body>${html.map((line) => `<p>${line}</p>`).join('')}</body></html>\n`,
  }
}

/** A name, unless it tries to be a link: anyone who registers somebody else's address chooses the name. */
function nameAsGiven(greeting: string): string {
  const name = plainName(greeting)
  return name === '' || name !== oneLine(greeting) ? '' : ` ${name}`
}
