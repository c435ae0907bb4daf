import { escaped } from '../markup-text.ts'
import { oneLine, plainName } from './plain-name.ts'

/** The emails about accounts and organizations: a text part, and the same as HTML. */
export interface Letter {
  readonly subject: string
  readonly text: string
  readonly html: string
}

interface Content {
  readonly subject: string
  readonly greeting: string | null
  /** Paragraphs before and after the link. */
  readonly before: readonly string[]
  readonly link: { readonly label: string; readonly url: string } | null
  /** What programs use instead of the link. */
  readonly token: string | null
  readonly after: readonly string[]
}

export interface Recipient {
  readonly email: string
  readonly full_name: string | null
}

/** The email that verifies an address. */
export function verificationLetter(to: Recipient, base: string, token: string, hours: number): Letter {
  return letter({
    subject: 'Verify your address',
    greeting: to.full_name,
    before: [`An account was registered with the address ${to.email}. Please confirm that it is yours.`],
    link: { label: 'Verify the address', url: link(base, 'verify-email', token) },
    token,
    after: [
      `This is valid for ${hours} ${hours === 1 ? 'hour' : 'hours'}. If it was not you, ignore this email.`,
    ],
  })
}

/** The email for setting a new password. */
export function resetLetter(to: Recipient, base: string, token: string, minutes: number): Letter {
  return letter({
    subject: 'Set a new password',
    greeting: to.full_name,
    before: [`Somebody requested a new password for the account ${to.email}.`],
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
export function inviteLetter(invite: Invitation, base: string, token: string, days: number): Letter {
  const organization = plainName(invite.organization)
  const by = invite.invitedBy === null ? 'You are invited' : `${plainName(invite.invitedBy)} invites you`
  return letter({
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
export function addedLetter(invite: Invitation): Letter {
  const organization = plainName(invite.organization)
  const by = invite.invitedBy === null ? '' : ` by ${plainName(invite.invitedBy)}`
  return letter({
    subject: `You are a member of ${organization}`,
    greeting: null,
    before: [`Your account ${invite.email} was added to ${organization} as ${invite.role}${by}.`],
    link: null,
    token: null,
    after: [],
  })
}

/** The email to the account of a webhook endpoint at which nothing arrives. */
export function webhookLetter(
  { full_name, url, failing_since }: { full_name: string | null; url: string; failing_since: string },
  id: number,
): Letter {
  return letter({
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

/** Tokens go after the `#`: browsers do not send the fragment, so they reach no log and no referrer. */
function link(base: string, page: string, token: string): string {
  return `${base}/${page}#token=${token}`
}

function letter({ subject, greeting, before, link, token, after }: Content): Letter {
  const hello = `Hello${greeting === null ? '' : nameAsGiven(greeting)},`
  const byHand = token === null ? [] : [`For programs, the token is: ${token}`]
  const text = [
    hello,
    ...before,
    ...(link === null ? [] : [`${link.label}: ${link.url}`]),
    ...byHand,
    ...after,
  ]
  const anchor = link === null ? [] : [`<a href="${escaped(link.url)}">${escaped(link.label)}</a>`]
  const html = [hello, ...before].map(escaped).concat(anchor, [...byHand, ...after].map(escaped))
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
