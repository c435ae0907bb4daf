import { escapeMarkup } from '../formats/markup-text.ts'
import type { AccountTemplate, TemplateValues } from './account-templates.ts'
import { toOneLine, toPlainName } from './plain-name.ts'

/** An email about an account or organization, as plain text and the same content in HTML. */
export interface Email {
  readonly subject: string
  readonly text: string
  readonly html: string
  /** Template that replaces these texts, if admins have stored it. */
  readonly template: AccountTemplate
  readonly values: Readonly<Record<string, string | number | null>>
}

/** Where the links of an email lead. */
export interface LinkTarget {
  /** Public address of this service, for its own pages. */
  readonly base: string
  /** Page of an own front end, which receives the token as the query parameter `token`; absent without one. */
  readonly redirectTo?: string | undefined
}

interface Link {
  readonly label: string
  readonly url: string
}

interface EmailContent<T extends AccountTemplate> {
  readonly template: T
  readonly values: TemplateValues<T>
  readonly subject: string
  readonly greeting: string | null
  /** Paragraphs that precede the link. */
  readonly before: readonly string[]
  readonly link: Link | null
  /** An alternative link with the same token. */
  readonly alternativeLink?: Link
  /** The token for clients that do not follow links; null if the email has no token. */
  readonly token: string | null
  readonly after: readonly string[]
}

export interface Recipient {
  readonly email: string
  readonly full_name: string | null
}

/** Returns the email with which an account verifies its address. */
export function composeVerificationEmail(
  to: Recipient,
  target: LinkTarget,
  token: string,
  hours: number,
): Email {
  const link = buildTokenUrl(target, 'verify-email', token)
  return composeEmail({
    template: 'account.verify',
    values: { name: toGreetingName(to.full_name), email: to.email, link, token, hours },
    subject: 'Verify your address',
    greeting: to.full_name,
    before: [
      `An account was registered with the address ${to.email}. Please confirm that it is yours. Confirmation deletes the account's API keys, passkeys, one-time codes and webhook endpoints, unless you are signed in or choose to keep them.`,
    ],
    link: { label: 'Verify the address', url: link },
    token,
    after: [`This link is ${formatValidity(hours)}. If it was not you, ignore this email.`],
  })
}

/** Returns the email to an account's current address about a pending change of address. */
export function composeOldAddressEmail(
  { name, address }: { readonly name: string | null; readonly address: string },
  target: LinkTarget,
  token: string,
  hours: number,
): Email {
  const link = buildTokenUrl(target, 'email-change', token)
  const refuseLink = buildTokenUrl(target, 'email-change/refuse', token, { action: 'refuse' })
  return composeEmail({
    template: 'account.email-change-old',
    values: {
      name: toGreetingName(name),
      new_email: address,
      link,
      refuse_link: refuseLink,
      token,
      hours,
    },
    subject: 'Confirm your email address change',
    greeting: name,
    before: [
      `We received a request to change the address of your account to ${address}. The change takes effect once both addresses confirm it.`,
    ],
    link: { label: 'Confirm the change', url: link },
    alternativeLink: { label: 'Refuse the change', url: refuseLink },
    token,
    after: [
      `This link is ${formatValidity(hours)}. If it was not you, refuse the change and set a new password: the request came from a session of your account.`,
    ],
  })
}

/**
 * Returns the email to the new address of a change. It names neither the account nor its owner, who may have mistyped
 * the address.
 */
export function composeNewAddressEmail(
  address: string,
  target: LinkTarget,
  token: string,
  hours: number,
): Email {
  const link = buildTokenUrl(target, 'email-change', token)
  return composeEmail({
    template: 'account.email-change-new',
    values: { email: address, link, token, hours },
    subject: 'Confirm your new address',
    greeting: null,
    before: [
      `We received a request to change the address of an account to ${address}. Please confirm that it is yours.`,
    ],
    link: { label: 'Confirm the address', url: link },
    token,
    after: [`This link is ${formatValidity(hours)}. If it was not you, ignore this email.`],
  })
}

/** Returns the email to the new address of a change if that address already has an account. */
export function composeAddressInUseEmail(address: string): Email {
  return composeEmail({
    template: 'account.email-in-use',
    values: { email: address },
    subject: 'Your address already has an account',
    greeting: null,
    before: [
      `We received a request to change the address of an account to ${address}, which already has its own account. Nothing has changed.`,
    ],
    link: null,
    token: null,
    after: ['If it was you, delete that account or change its address, then request the change again.'],
  })
}

/** Returns the email about a pending deletion; `at` is in UTC. */
export function composeDeletionEmail({ email, full_name, at }: Recipient & { readonly at: string }): Email {
  return composeEmail({
    template: 'account.deletion',
    values: { name: toGreetingName(full_name), email, at },
    subject: 'Your account will be deleted',
    greeting: full_name,
    before: [
      `Your account ${email} will be deleted on ${at} UTC, with all of its data. You can use it as usual until then.`,
    ],
    link: null,
    token: null,
    after: [
      'To keep it, sign in before that time and cancel the deletion: POST /api/v1/auth/me/restore. If it was not you, set a new password as well.',
    ],
  })
}

/** Returns the email to an admin about an account that was deleted although its subscriptions still run. */
export function composeForcedDeletionEmail(
  { full_name }: Recipient,
  account: number,
  subscriptions: readonly string[],
): Email {
  const names = subscriptions.join(', ')
  const running = names === '' ? '' : ` (${names})`
  return composeEmail({
    template: 'account.deletion-forced',
    values: { name: toGreetingName(full_name), account_id: account, subscriptions: names },
    subject: 'An account was deleted, but its subscriptions may still run',
    greeting: full_name,
    before: [
      `For a week, the subscriptions of the account ${account} could not be cancelled at the payment provider${running}. The account is now deleted all the same.`,
    ],
    link: null,
    token: null,
    after: ['Cancel the subscriptions there. The audit event account.deletion_forced names the reason.'],
  })
}

const NOTICE_TEXTS = {
  key_created: ['New API key', 'An API key was created for your account', 'delete the key'],
  passkey_added: ['New passkey', 'A passkey was added to your account', 'delete the passkey'],
  passkey_deleted: ['Passkey deleted', 'A passkey was deleted from your account', 'add it again'],
  identity_linked: ['New sign-in', 'A way to sign in was linked to your account', 'unlink it'],
  identity_unlinked: [
    'Sign-in removed',
    'A way to sign in was removed from your account',
    'sign in with it again',
  ],
  totp_disabled: [
    'One-time codes disabled',
    'One-time codes were disabled for your account',
    'enable them again',
  ],
} as const

/** Returns the email about a changed credential; `name` is the name of the credential. */
export function composeNoticeEmail(
  { email, full_name }: Recipient,
  kind: keyof typeof NOTICE_TEXTS,
  name: string | undefined,
): Email {
  const [subject, text, remedy] = NOTICE_TEXTS[kind]
  return composeEmail({
    template: 'account.notice',
    values: {
      name: toGreetingName(full_name),
      email,
      event: text,
      credential: name === undefined ? null : toPlainName(name),
    },
    subject,
    greeting: full_name,
    before: [`${text} ${email}${name === undefined ? '' : `: ${toOneLine(name)}`}.`],
    link: null,
    token: null,
    after: [`If it was not you, set a new password to end all sessions, and ${remedy}.`],
  })
}

/** Returns the email to reset a password. */
export function composePasswordResetEmail(
  to: Recipient,
  target: LinkTarget,
  token: string,
  minutes: number,
): Email {
  const link = buildTokenUrl(target, 'password-reset', token)
  return composeEmail({
    template: 'account.reset',
    values: { name: toGreetingName(to.full_name), email: to.email, link, token, minutes },
    subject: 'Set a new password',
    greeting: to.full_name,
    before: [
      `We received a request to reset the password of the account ${to.email}. A new password ends all sessions. It also deletes API keys and the webhook endpoints that they added, unless you choose to keep them.`,
    ],
    link: { label: 'Set a new password', url: link },
    token,
    after: [
      `This link is valid once, for ${minutes} ${minutes === 1 ? 'minute' : 'minutes'}. If it was not you, ignore this email: your password stays the same.`,
    ],
  })
}

/** Returns the email with a link that signs in. */
export function composeMagicLinkEmail(
  to: Recipient,
  target: LinkTarget,
  token: string,
  minutes: number,
): Email {
  const link = buildTokenUrl(target, 'magic-link', token)
  return composeEmail({
    template: 'account.magic-link',
    values: { name: toGreetingName(to.full_name), email: to.email, link, token, minutes },
    subject: 'Sign in',
    greeting: to.full_name,
    before: [`We received a request to sign in to the account ${to.email}.`],
    link: { label: 'Sign in', url: link },
    token,
    after: [
      `This link is valid once, for ${minutes} ${minutes === 1 ? 'minute' : 'minutes'}. If it was not you, ignore this email.`,
    ],
  })
}

/** Returns the email about a disabled webhook endpoint. */
export function composeDisabledWebhookEmail(
  { full_name, url, failing_since }: { full_name: string | null; url: string; failing_since: string },
  id: number,
): Email {
  return composeEmail({
    template: 'account.webhook-disabled',
    values: { name: toGreetingName(full_name), endpoint_id: id, url: toOneLine(url), since: failing_since },
    subject: 'Webhook endpoint disabled',
    greeting: full_name,
    before: [
      `All deliveries to the webhook endpoint ${id} have failed since ${failing_since}, so it was disabled: ${toOneLine(url)}`,
    ],
    link: null,
    token: null,
    after: [
      `Undelivered events are kept and sent once you enable it again: PATCH /api/v1/webhooks/${id} with {"is_active": true}.`,
    ],
  })
}

const formatValidity = (hours: number): string => `valid for ${hours} ${hours === 1 ? 'hour' : 'hours'}`

/**
 * Returns a link with a token. On this service's own pages the token follows the `#`: browsers do not send the
 * fragment, so it never appears in logs or referrers. A front end gets it as a query parameter.
 */
export function buildTokenUrl(
  { base, redirectTo }: LinkTarget,
  page: string,
  token: string,
  more: Readonly<Record<string, string>> = {},
): string {
  if (redirectTo === undefined) return `${base}/${page}#token=${token}`
  const url = new URL(redirectTo)
  for (const [name, value] of Object.entries({ token, ...more })) url.searchParams.set(name, value)
  return url.href
}

export function composeEmail<T extends AccountTemplate>({
  template,
  values,
  subject,
  greeting,
  before,
  link,
  alternativeLink,
  token,
  after,
}: EmailContent<T>): Email {
  const name = toGreetingName(greeting)
  const greetingLine = name === null ? 'Hello,' : `Hello ${name},`
  const tokenLines = token === null ? [] : [`For programs, the token is: ${token}`]
  const links = [link, alternativeLink].filter((one) => one != null)
  const text = [
    greetingLine,
    ...before,
    ...links.map(({ label, url }) => `${label}: ${url}`),
    ...tokenLines,
    ...after,
  ]
  const anchors = links.map(({ label, url }) => `<a href="${escapeMarkup(url)}">${escapeMarkup(label)}</a>`)
  const html = [greetingLine, ...before]
    .map(escapeMarkup)
    .concat(anchors, [...tokenLines, ...after].map(escapeMarkup))
  return {
    subject,
    text: `${text.join('\n\n')}\n`,
    html: `<!doctype html><html lang="en"><body>${html.map((line) => `<p>${line}</p>`).join('')}</body></html>\n`,
    template,
    values,
  }
}

/**
 * Returns the name for the greeting; null if there is none or it looks like a link. Anyone can register another
 * person's address with any name.
 */
function toGreetingName(fullName: string | null): string | null {
  const name = toPlainName(fullName ?? '')
  return name === '' || name !== toOneLine(fullName ?? '') ? null : name
}
