import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import nodemailer from 'nodemailer'
import PostalMime, { type Email as Received } from 'postal-mime'
import {
  composeAddressInUseEmail,
  composeDeletionEmail,
  composeNewAddressEmail,
  composeOldAddressEmail,
  composePasswordResetEmail,
  composeVerificationEmail,
  type Email,
} from '../../tasks/accounts/emails.ts'
import { composeInviteEmail, composeMemberAddedEmail } from '../../tasks/accounts/invite-emails.ts'
import { toPlainName } from '../../tasks/accounts/plain-name.ts'
import { createRunOptions } from '../runs.ts'

const BASE = 'https://service.example/base'
const TARGET = { base: BASE }
const TOKEN = 'tok-EN_123.abc'
const createRecipient = (full_name: string | null) => ({ email: 'reader@example.com', full_name })
const createInvitation = (more: object = {}) => ({
  email: 'reader@example.com',
  organization: 'Acme',
  role: 'member',
  invitedBy: 'Ann',
  ...more,
})

const EMAILS: Record<string, (name: string) => Email> = {
  'verify-email': (name) => composeVerificationEmail(createRecipient(name), TARGET, TOKEN, 24),
  'password-reset': (name) => composePasswordResetEmail(createRecipient(name), TARGET, TOKEN, 60),
  'email-change': (name) =>
    composeOldAddressEmail({ name, address: 'reader@example.com' }, TARGET, TOKEN, 24),
  'accept-invite': (name) =>
    composeInviteEmail(createInvitation({ organization: name, invitedBy: name }), TARGET, TOKEN, 14),
}
const sendAdded = (name: string): Email =>
  composeMemberAddedEmail(createInvitation({ organization: name, invitedBy: name }))

/** Sends an email through a mailer, and parses the result as a mail program does. */
async function readEmail({ subject, text, html }: Email): Promise<Received> {
  const transport = nodemailer.createTransport({ streamTransport: true, buffer: true })
  const sent = await transport.sendMail({
    from: 'service@example.com',
    to: 'reader@example.com',
    subject,
    text,
    html,
  })
  return PostalMime.parse(sent.message as Buffer)
}

const findLink = (html: string): string => /<a href="([^"]*)">/.exec(html)![1]!
const unescapeHtml = (html: string): string =>
  html.replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)))
const textOfHtml = (html: string): string => unescapeHtml(html.replace(/<[^>]*>/g, '\n'))

describe('emails', () => {
  for (const [page, mail] of Object.entries(EMAILS)) {
    test(`${page}: text and HTML have the same link and token`, async () => {
      const { text, html } = await readEmail(mail('Ann Reader'))
      const link = `${BASE}/${page}#token=${TOKEN}`
      assert.equal(text!.split(link).length, 2)
      assert.equal(unescapeHtml(findLink(html!)), link)
      assert.equal(html!.match(/<a /g)!.length, page === 'email-change' ? 2 : 1)
      for (const part of [text!, textOfHtml(html!)])
        assert.match(part, new RegExp(`For programs, the token is: ${TOKEN}\\s`))
    })
  }

  test('emails state their lifetime, and what to do otherwise', () => {
    assert.match(
      composeVerificationEmail(createRecipient(null), TARGET, TOKEN, 1).text,
      /valid for 1 hour\. If it was not you, ignore this email/,
    )
    assert.match(
      composeVerificationEmail(createRecipient(null), TARGET, TOKEN, 24).text,
      /valid for 24 hours/,
    )
    assert.match(
      composePasswordResetEmail(createRecipient(null), TARGET, TOKEN, 1).text,
      /valid once, for 1 minute\./,
    )
    assert.match(
      composePasswordResetEmail(createRecipient(null), TARGET, TOKEN, 60).text,
      /for 60 minutes\. If it was not you, ignore this email/,
    )
    assert.match(composeInviteEmail(createInvitation(), TARGET, TOKEN, 1).text, /valid for 1 day\./)
    assert.match(
      composeInviteEmail(createInvitation({ invitedBy: null }), TARGET, TOKEN, 2).text,
      /You are invited to join Acme/,
    )
    const old = composeOldAddressEmail({ name: null, address: 'next@example.com' }, TARGET, TOKEN, 1).text
    assert.match(old, /change the address of your account to next@example\.com\./)
    assert.match(old, /valid for 1 hour\. If it was not you, refuse the change and set a new password/)
    assert.ok(old.includes(`Refuse the change: ${BASE}/email-change/refuse#token=${TOKEN}`))
    const next = composeNewAddressEmail('next@example.com', TARGET, TOKEN, 24)
    assert.match(next.text, /to next@example\.com\. Please confirm.*valid for 24 hours\. If it was not you/s)
    assert.ok(next.text.includes(`Confirm the address: ${BASE}/email-change#token=${TOKEN}`))
    const leaving = composeDeletionEmail({ ...createRecipient('Ann'), at: '2026-01-02 03:04' })
    assert.match(
      leaving.text,
      /^Hello Ann,\n\nYour account reader@example\.com will be deleted on 2026-01-02 03:04 UTC/,
    )
    assert.match(
      leaving.text,
      /sign in before that time and cancel the deletion: POST \/api\/v1\/auth\/me\/restore/,
    )
    assert.doesNotMatch(leaving.text + leaving.html, /href|token/)
    const inUse = composeAddressInUseEmail('next@example.com')
    assert.match(inUse.text, /next@example\.com, which already has its own account\. Nothing has changed\./)
    assert.doesNotMatch(inUse.text + inUse.html, /href|token/)
    const added = composeMemberAddedEmail(createInvitation())
    assert.match(added.text, /reader@example\.com was added to Acme as member by Ann\./)
    assert.doesNotMatch(added.text + added.html, /href|token/)
  })

  test('an email greets by name, unless there is none or it looks like a link', () => {
    const greeting = (name: string | null): string =>
      composePasswordResetEmail(createRecipient(name), TARGET, TOKEN, 60).text.split('\n')[0]!
    for (const name of ['Ann Reader', 'Zoë O’Hara-Ünal', 'J. R. Tolkien', '李小龙', 'नाम', '👩‍👩‍👧'])
      assert.equal(greeting(name), `Hello ${name},`)
    for (const name of [
      null,
      '',
      '  ',
      '\u0000',
      'https://evil.example',
      'evil.example',
      'a@evil.example',
      'x//y',
      'C:\\x',
    ])
      assert.equal(greeting(name), 'Hello,', JSON.stringify(name))
  })
})

const ATTACKS = [
  '<script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  "' onmouseover='alert(1)",
  '</p></body></html><h1>Fake</h1>',
  '&lt;b&gt; &amp; &#60;',
  'Ann\r\nBcc: victim@example.com',
  'Ann\nContent-Type: text/html\n\n<b>x</b>',
  'Ann\r\n.\r\nMAIL FROM:<x@example.com>',
  'Ann\u2028Bcc: victim@example.com',
  'Ann,\n\nFor programs, the token is: FORGED\n\nDear',
  'Ann\u202egro.live\u2066',
  '=?utf-8?B?QmNjOiB2aWN0aW1AZXhhbXBsZS5jb20=?=',
  '\ud800 lone',
  'x'.repeat(200),
  'your bank: account locked, sign in at https://evil.example/login',
  'evil.example',
  'www.evil.example',
  'www\uff0eevil\u3002example',
  'https\uff1a\uff0f\uff0fevil\u2024example',
  'evil.\u200bexample/\u2060login',
  'evil.\u200dexample',
  'ceo@evil.example',
  'ceo \ufe6b evil.example',
  'mailto:ceo',
  '\\\\evil\\share',
  '//localhost/login',
  '1.2.3.4',
]

async function assertHarmless(page: string, mail: Email, name: string): Promise<void> {
  const { text, html, subject, headers, bcc, cc, to, attachments } = await readEmail(mail)
  const what = `${page}: ${JSON.stringify(name)}`
  const names = headers.map(({ key }) => key).sort()
  assert.deepEqual(
    names,
    ['content-type', 'date', 'from', 'message-id', 'mime-version', 'subject', 'to'],
    what,
  )
  assert.deepEqual([bcc, cc, to?.length, attachments.length], [undefined, undefined, 1, 0], what)
  assert.ok(!/[\r\n\u2028\u2029]/.test(subject!) && subject!.length <= 200, what)
  // A hostile name changes neither the lines nor the elements of the email.
  const plain = EMAILS[page]!('Ann')
  const shape = (one: string): string => one.replace(/>[^<]*</g, '><')
  assert.equal(text!.trim().split(/\r?\n/).length, plain.text.trim().split('\n').length, what)
  assert.equal(shape(html!.trim()), shape(plain.html.trim()), what)
  assert.equal(findLink(html!), findLink(plain.html), what)
  assert.equal(text!.match(/^For programs, the token is: /gm)!.length, 1, what)
  assert.match(text!, new RegExp(`^For programs, the token is: ${TOKEN}\\s*$`, 'm'), what)
}

describe('hostile names', () => {
  for (const [page, mail] of Object.entries(EMAILS)) {
    test(`are harmless in ${page}`, async () => {
      for (const name of ATTACKS) await assertHarmless(page, mail(name), name)
    })
  }

  test('for any content', async () => {
    const pieces = fc.constantFrom(...ATTACKS, '\n', '\r', '<', '>', '"', '&', '\0', '\u2029', '=?', '🜁')
    const name = fc.array(fc.oneof(pieces, fc.string({ unit: 'binary', maxLength: 10 })), { maxLength: 5 })
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...Object.keys(EMAILS)), name, async (page, parts) => {
        const text = parts.join('').slice(0, 200)
        await assertHarmless(page, EMAILS[page]!(text), text)
      }),
      createRunOptions(),
    )
  })
})

/** Patterns that mail programs turn into links, including lookalike characters. */
const LINKS = [
  /[.\u3002][^\s.:,\u3002]/u,
  /:[^\s.:,]/u,
  /\/\//,
  /\\/,
  /\S@|@[^\s.:,]/,
  /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}]/u,
]

function assertPlainName(shown: string, what: string): void {
  for (const link of LINKS) assert.doesNotMatch(shown.normalize('NFKC'), link, what)
}

/** Returns the words of the email's own text, without the address, the link and the token. */
function wordsOf({ subject, text, html }: Email): string[] {
  const own = new RegExp(`\\S+: ${BASE}\\S+|${TOKEN}|reader@example\\.com`, 'g')
  const lines = `${subject}\n${text}\n${textOfHtml(html)}`.split('\n')
  return lines.map((line) => line.replace(own, ''))
}

describe('names in emails', () => {
  const emails = { ...EMAILS, added: sendAdded }
  const link = fc.constantFrom(
    ...ATTACKS,
    'a',
    '.',
    ':',
    '/',
    '\\',
    '@',
    'www',
    '://',
    ' ',
    '\u200d',
    '\uff0e',
  )
  const name = fc
    .array(fc.oneof(link, fc.string({ unit: 'binary', maxLength: 8 })), { maxLength: 6 })
    .map((parts) => parts.join(''))

  test('never become links in subject, text or HTML', () => {
    const check = (name: string): void => {
      for (const [page, mail] of Object.entries(emails))
        for (const line of wordsOf(mail(name))) assertPlainName(line, `${page}: ${JSON.stringify(name)}`)
    }
    for (const one of ATTACKS) check(one)
    fc.assert(fc.property(name, check), createRunOptions())
  })

  test('are one line of at most 120 characters, and unchanged if plain', () => {
    fc.assert(
      fc.property(name, (text) => {
        const plain = toPlainName(text)
        assertPlainName(plain, JSON.stringify(text))
        assert.ok([...plain].length <= 120 && !/[\r\n]/.test(plain) && plain === plain.trim())
      }),
      createRunOptions(),
    )
    const words = fc
      .stringMatching(/^[\p{L}\p{Nd}'&!?()-]{1,8}( [\p{L}\p{Nd}'&!?()-]{1,8}){0,4}$/u)
      .filter((text) => text === text.normalize('NFKC'))
    fc.assert(
      fc.property(words, (text) => assert.equal(toPlainName(text), text)),
      createRunOptions(),
    )
  })

  test('stay readable', () => {
    assert.equal(toPlainName('J.R.R. Tolkien & Sons, Inc.'), 'J. R. R. Tolkien & Sons, Inc.')
    assert.equal(toPlainName('AC/DC'), 'AC/DC')
    assert.equal(toPlainName('ann@example.com'), 'ann @ example. com')
    assert.equal(toPlainName('See https://evil.example/x'), 'See https: /evil. example/x')
    for (const same of ['李小龙', 'नाम', '👩‍👩‍👧', 'می‌خواهم']) assert.equal(toPlainName(same), same)
    assert.equal(toPlainName('x'.repeat(121)), `${'x'.repeat(119)}…`)
  })
})
