import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { startMessageWorker, startProviderStandIns } from './comms-help.ts'
import { type Answered, startEdgeAndDatabase } from './harness.ts'

/** Tests mail with an edge, a worker, the real SDKs and stand-ins for the providers. */

const standIns = await startProviderStandIns()
const { mail } = standIns
const env = { ...standIns.env, OPEN_AREAS: 'comms,jobs' }
const { api, url, query } = await startEdgeAndDatabase({ env })
await startMessageWorker(url, env)

const post = (path: string, json: unknown, headers = {}): Promise<Answered> =>
  api.post(`/api/v1/comms${path}`, { json, headers })
const readLastMessage = async () =>
  (await query('select * from comms_send order by created_at desc, id desc limit 1'))[0]!

describe('POST /comms/email/send', () => {
  const body = { to: ['a@example.com'], subject: 'Hello', text: 'The text' }
  const send = (more: object = {}, path = ''): Promise<Answered> =>
    post(`/email/send${path}`, { ...body, ...more })

  test('answers with the id of the message', async () => {
    const answer = await send({
      to: ['a@example.com', 'B@Example.com'],
      cc: ['c@example.com'],
      bcc: ['d@example.com'],
      html: '<p>x</p>',
      reply_to: 'r@example.com',
      from_email: 'other@example.com',
    })
    const { id, ...rest } = answer.json
    assert.deepEqual(
      [answer.status, rest],
      [
        200,
        {
          to: ['a@example.com', 'B@example.com'],
          status: 'sent',
          message: 'The mail server accepted the message',
        },
      ],
    )
    assert.equal(mail.taken.at(-1), `<${id}@example.com>`)
    assert.match(
      mail.raw.at(-1)!,
      /^From: other@example.com\r\nTo: a@example.com, B@example.com\r\nCc: c@example.com/m,
    )
    const row = await readLastMessage()
    assert.deepEqual([row.id, row.status, row.recipients, row.requests], [id, 'sent', rest.to, 1])
  })

  test('html alone is enough', async () => {
    const answer = await post('/email/send', { to: ['a@example.com'], subject: 's', html: '<p>x</p>' })
    assert.equal(answer.status, 200)
  })

  const invalid: Readonly<Record<string, [object, string[]]>> = {
    'no body': [{ to: undefined, subject: undefined, text: undefined }, ['to']],
    'no recipient': [{ to: [] }, ['to']],
    'one recipient that is no list': [{ to: 'a@example.com' }, ['to']],
    'a bad address': [{ to: ['a@example.com', 'b'] }, ['to', '1']],
    'an address with a line break': [{ to: ['a@example.com\r\nBcc: x@example.com'] }, ['to', '0']],
    '51 recipients': [{ to: Array.from({ length: 51 }, (_, n) => `a${n}@example.com`) }, ['to']],
    '51 recipients in all': [{ to: Array(25).fill('a@x.org'), cc: Array(26).fill('b@x.org') }, ['to']],
    'no subject': [{ subject: '' }, ['subject']],
    'a subject of two lines': [{ subject: 'a\r\nBcc: x@example.com' }, ['subject']],
    'neither text nor html': [{ text: undefined }, ['text']],
    'a bad copy': [{ cc: ['x'] }, ['cc', '0']],
    'a bad blind copy': [{ bcc: ['x'] }, ['bcc', '0']],
    'a bad reply address': [{ reply_to: 'x' }, ['reply_to']],
    'a bad sender': [{ from_email: 'Name a@example.com' }, ['from_email']],
    'an unknown field': [{ attachment: [] }, []],
  }
  for (const [what, [more, loc]] of Object.entries(invalid)) {
    test(`422 for ${what}`, async () => {
      const before = mail.requests
      const answer = await send(more)
      assert.equal(answer.status, 422, answer.text)
      assert.deepEqual(answer.json.errors[0].loc.map(String), ['body', ...loc])
      assert.equal(mail.requests, before)
    })
  }

  test('400 for a sender whose domain the account has not verified', async () => {
    for (const from_email of ['a@new.example', 'a@other.example']) {
      const answer = await send({ from_email })
      assert.equal(answer.status, 400)
      assert.match(answer.json.detail, /(new|other)\.example is not a verified domain/)
      assert.equal((await readLastMessage()).status, 'failed')
    }
  })

  test('502 if the mail server rejects the message', async () => {
    mail.mode = () => ({ status: 550, at: 'rcpt' })
    const answer = await send()
    mail.mode = () => 'take'
    assert.deepEqual(
      [answer.status, answer.json],
      [502, { detail: 'The email provider refused the message: SMTP status 550', code: 'email.refused' }],
    )
  })

  test('a busy server is retried', async () => {
    const before = mail.requests
    mail.mode = () => (mail.requests === before ? { status: 451, at: 'data' } : 'take')
    assert.equal((await send()).json.status, 'sent')
    assert.equal(mail.requests, before + 2)
    mail.mode = () => 'take'
  })

  test('the outcome is unknown if the server falls silent after receiving the mail', async () => {
    mail.mode = () => 'cut after'
    const before = mail.requests
    const answer = await send()
    mail.mode = () => 'take'
    assert.deepEqual([answer.status, answer.json.status], [200, 'unknown'])
    assert.match(answer.json.message, /^The outcome of the send is unknown: the connection broke/)
    assert.equal(mail.requests, before + 1)
  })
})
