import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import PostalMime from 'postal-mime'
import { startMessageWorker, startProviderStandIns } from './comms-help.ts'
import { startEdgeAndDatabase } from './harness.ts'

/** Display names and headers of emails, as they arrive at the mail server. */

const standIns = await startProviderStandIns()
const { mail } = standIns
const env = {
  ...standIns.env,
  OPEN_AREAS: 'comms,jobs',
  EMAIL_PROVIDER_FROM_EMAIL: '"The Mill" <service@example.com>',
}
const { api, url, query } = await startEdgeAndDatabase({ env })
await startMessageWorker(url, env)

const send = (more: object) =>
  api.post('/api/v1/comms/email/send', {
    json: { to: ['a@example.com'], subject: 's', text: 't', ...more },
  })
async function sendAndRead(more: object) {
  const answer = await send(more)
  assert.equal(answer.status, 200, answer.text)
  const raw = mail.raw.at(-1)!
  return { answer: answer.json, raw, mail: await PostalMime.parse(raw) }
}
const readLastSend = async () =>
  (await query('select * from comms_send order by created_at desc, id desc limit 1'))[0]!
async function assertInvalid(more: object, loc: readonly string[]) {
  const before = mail.requests
  const answer = await send(more)
  assert.equal(answer.status, 422, answer.text)
  assert.deepEqual(answer.json.errors[0].loc.map(String), ['body', ...loc])
  assert.equal(mail.requests, before)
}

describe('display names', () => {
  test('reach the headers, and the ledger has bare addresses', async () => {
    const sent = await sendAndRead({
      from_email: '"Ann, of \\"Sales\\"" <Ann@example.com>',
      to: ['Bob B. O’Brien <bob@example.com>', '"c@evil.example" <c@example.com>', '<d@example.com>'],
      cc: ['李小龙 <e@example.com>'],
      bcc: ['"F" <f@example.com>'],
      reply_to: 'Help Desk<g@example.com>',
    })
    assert.deepEqual(sent.mail.from, { address: 'Ann@example.com', name: 'Ann, of "Sales"' })
    assert.deepEqual(sent.mail.to, [
      { address: 'bob@example.com', name: 'Bob B. O’Brien' },
      { address: 'c@example.com', name: 'c@evil.example' },
      { address: 'd@example.com', name: '' },
    ])
    assert.deepEqual(sent.mail.cc, [{ address: 'e@example.com', name: '李小龙' }])
    assert.deepEqual(sent.mail.replyTo, [{ address: 'g@example.com', name: 'Help Desk' }])
    assert.equal(mail.taken.at(-1), `<${sent.answer.id}@example.com>`)
    const addresses = ['bob@example.com', 'c@example.com', 'd@example.com', 'e@example.com', 'f@example.com']
    assert.deepEqual(sent.answer.to, addresses.slice(0, 3))
    const row = await readLastSend()
    assert.deepEqual(row.recipients, addresses.slice(0, 3))
    assert.deepEqual(
      row.deliveries,
      addresses.map((address) => ({ address })),
    )
  })

  test('the configured sender has one', async () => {
    const sent = await sendAndRead({})
    assert.deepEqual(sent.mail.from, { address: 'service@example.com', name: 'The Mill' })
    const { email } = (await api.get('/api/v1/comms/status')).json
    assert.equal(email.from, 'service@example.com')
  })

  test('a recipient that the server refuses is known by its bare address', async () => {
    mail.unknownRecipients.add('gone@example.com')
    await sendAndRead({ to: ['Ann <a@example.com>', 'Gone <gone@example.com>'] })
    assert.deepEqual((await readLastSend()).deliveries, [
      { address: 'a@example.com', status: 'sent' },
      { address: 'gone@example.com', status: 'failed', detail: 'SMTP status 550' },
    ])
  })

  test('the domain of a named sender is checked', async () => {
    const answer = await send({ from_email: 'Ann <ann@other.example>' })
    assert.deepEqual([answer.status, answer.json.code], [400, 'email.sender_unverified'])
  })

  for (const [what, text] of Object.entries({
    'an unquoted comma': 'Miller, Ann <a@example.com>',
    'an unquoted address': 'x@example.com <a@example.com>',
    'two addresses': '<a@example.com> <b@example.com>',
    'a list': 'a@example.com, Ann <b@example.com>',
    'an open quote': '"Ann <a@example.com>',
    'a name without an address': '"Ann"',
    'an empty address': 'Ann <>',
    'a bad address': 'Ann <a@b@example.com>',
    'a line break in a name': '"Ann\r\nBcc: x@example.com" <a@example.com>',
    'an escaped line break in a name': '"Ann\\\nBcc: x" <a@example.com>',
    'a line break in an address': 'Ann <a@example.com\nBcc: x@example.com>',
    'a long name': `${'n'.repeat(257)} <a@example.com>`,
  }))
    test(`422 for ${what}`, async () => {
      await assertInvalid({ to: [text] }, ['to', '0'])
      await assertInvalid({ from_email: text }, ['from_email'])
      await assertInvalid({ reply_to: text }, ['reply_to'])
    })
})

describe('own headers', () => {
  test('reach the mail server', async () => {
    const headers = {
      'x-tag': `a ${'long value '.repeat(80)}`,
      'List-ID': 'News <news.example.com>',
      References: '<a@example.com> <b@example.com>',
      'In-Reply-To': '<b@example.com>',
      Precedence: 'bulk',
      'Feedback-ID': '1:2:3',
    }
    const sent = await sendAndRead({ headers: { ...headers, 'X-Campaign': 'Frühling ✓' } })
    assert.match(sent.raw, /^X-Campaign: =\?UTF-8\?Q\?Fr=C3=BChling_=E2=9C=93\?=\r$/m)
    const arrived = new Map(sent.mail.headers.map(({ key, value }) => [key, value] as const))
    for (const [name, value] of Object.entries(headers))
      assert.equal(arrived.get(name.toLowerCase()), value.trim(), name)
    assert.equal(arrived.get('x-send-id'), sent.answer.id)
    assert.ok(sent.raw.split('\r\n').every((line) => line.length <= 998))
  })

  test('a value without spaces has lines that every server takes', async () => {
    const { raw } = await sendAndRead({ headers: { [`X-${'n'.repeat(62)}`]: 'v'.repeat(900) } })
    assert.ok(raw.split('\r\n').every((line) => line.length <= 998))
  })

  for (const name of [
    ...['From', 'Sender', 'To', 'cc', 'BCC', 'Reply-To', 'Subject', 'Date', 'Message-ID', 'Return-Path'],
    ...['Received', 'Content-Type', 'Content-Transfer-Encoding', 'MIME-Version', 'DKIM-Signature'],
    ...['ARC-Seal', 'Authentication-Results', 'Auto-Submitted', 'Resend-Idempotency-Key', 'Resent-To'],
    ...['X-Send-ID', 'x-smtpapi', 'X-MC-BccAddress', 'X-', 'X_A', 'X-A: b', 'X-A\r\nBcc', '', ' X-A', 'X-Ä'],
    ...['Apparently-To', 'Disposition-Notification-To', 'Errors-To', `X-${'n'.repeat(63)}`],
  ])
    test(`422 for the name ${JSON.stringify(name)}`, () =>
      assertInvalid({ headers: { [name]: 'x' } }, ['headers', name]))

  for (const [what, value] of Object.entries({
    'a line break': 'a\r\nBcc: x@example.com',
    'a folded line': 'a\r\n b',
    'a carriage return': 'a\rb',
    'a NUL': 'a\0b',
    'no text': '',
    blanks: '  ',
    'a long text': 'v'.repeat(901),
    'a number': 7,
    'a list': ['a'],
  }))
    test(`422 for a value with ${what}`, () =>
      assertInvalid({ headers: { 'X-A': value } }, ['headers', 'X-A']))

  test('422 for 21 headers, and for one that is named twice', async () => {
    await assertInvalid(
      { headers: Object.fromEntries(Array.from({ length: 21 }, (_, n) => [`X-${n}`, 'x'])) },
      ['headers'],
    )
    await assertInvalid({ headers: { 'X-A': '1', 'x-a': '2' } }, ['headers'])
  })
})
