import assert from 'node:assert/strict'
import { createHmac, randomUUID } from 'node:crypto'
import { describe, type TestContext, test } from 'node:test'
import { validateRequest } from 'twilio/lib/webhooks/webhooks.js'
import { beginSendRequest, type Channel, insertSend, markSent } from '../../sql/comms/sends.ts'
import { createMailEvent, createSignedEvent, WEBHOOK_SECRET } from '../standins/resend.ts'
import { createSignedCallback, createTwilioEnv, TOKEN } from '../standins/twilio.ts'
import { getSharedEdge, startEdge } from './harness.ts'
import { assertRefused } from './orgs-help.ts'

/**
 * The edge must accept provider events about messages only with a valid signature, and reject all others the same way.
 */

const BASE_URL = 'https://mill.example.com/base'
const env = {
  ...createTwilioEnv('http://127.0.0.1:9'),
  EMAIL_PROVIDER_WEBHOOK_SECRET: WEBHOOK_SECRET,
  PUBLIC_BASE_URL: BASE_URL,
}
const { url, db, query } = await getSharedEdge()
const api = await startEdge(url, { env })
const unconfiguredEdge = await startEdge(url, { env: { PUBLIC_BASE_URL: BASE_URL } })
const TWILIO_PATH = '/api/v1/comms/webhooks/twilio'
const RESEND_PATH = '/api/v1/comms/webhooks/resend'
const INVALID_EVENT = 'The event is malformed, or its signature is invalid or expired'

/** Inserts a message that its provider has accepted. */
async function addSentMessage(channel: Channel, providerId: string | null): Promise<string> {
  const id = randomUUID()
  await db.run(insertSend({ id, channel, ownerId: null, jobId: id, recipients: ['x'], message: { to: 'x' } }))
  await db.one(beginSendRequest(id, { id, attempt: 1 }, false))
  await db.one(markSent(id, { providerId, status: 'queued', detail: null }))
  return id
}
const readMessage = async (id: string) =>
  (
    await query(
      'select status, provider_id, provider_status, error_code, detail from comms_send where id = $1',
      [id],
    )
  )[0]!
const readStatus = async (id: string) => (await readMessage(id)).status

describe('a callback of the telephony provider', () => {
  const call = (parameters: Readonly<Record<string, string>>, search = '', token = TOKEN, to = api) =>
    to.post(
      `${TWILIO_PATH}${search}`,
      createSignedCallback(`${BASE_URL}${TWILIO_PATH}${search}`, parameters, token),
    )

  test("is signed as the provider's SDK expects", () => {
    const { headers } = createSignedCallback(`${BASE_URL}?a=b`, { B: '2', A: '1 &' })
    assert.ok(validateRequest(TOKEN, headers['x-twilio-signature']!, `${BASE_URL}?a=b`, { A: '1 &', B: '2' }))
  })

  for (const [given, status, code] of [
    ['sent', 'sent', null],
    ['delivered', 'delivered', null],
    ['read', 'delivered', null],
    ['undelivered', 'failed', 'telephony.undelivered'],
    ['failed', 'failed', 'telephony.undelivered'],
    ['canceled', 'failed', 'telephony.undelivered'],
    ['of a later version', 'sent', null],
    ['constructor', 'sent', null],
  ] as const)
    test(`sets the status of a text message: ${given}`, async () => {
      const sid = `SM${randomUUID()}`
      const id = await addSentMessage('sms', sid)
      const answer = await call({ MessageSid: sid, MessageStatus: given, ErrorCode: '30003' })
      assert.deepEqual([answer.status, answer.json], [200, { received: 'true' }])
      const { detail, ...found } = await readMessage(id)
      const moved = status === 'sent' ? 'queued' : given
      assert.deepEqual(found, { status, provider_id: sid, provider_status: moved, error_code: code })
      const reason = `The carrier failed to deliver the message: ${given} (error 30003)`
      assert.equal(detail, code === null ? null : reason)
    })

  for (const [given, status] of [
    ['ringing', 'sent'],
    ['completed', 'delivered'],
    ['busy', 'failed'],
    ['no-answer', 'failed'],
  ] as const)
    test(`sets the status of a call: ${given}`, async () => {
      const sid = `CA${randomUUID()}`
      const id = await addSentMessage('call', sid)
      assert.equal((await call({ CallSid: sid, CallStatus: given })).status, 200)
      assert.equal(await readStatus(id), status)
    })

  test('finds a message whose provider id is not stored yet', async () => {
    const id = randomUUID()
    await db.run(insertSend({ id, channel: 'sms', ownerId: null, jobId: id, recipients: ['x'], message: {} }))
    await db.one(beginSendRequest(id, { id, attempt: 1 }, false))
    const told = { MessageSid: `SM${id}`, MessageStatus: 'delivered' }
    assert.equal((await call(told, `?send_id=${id}`)).status, 200)
    assert.deepEqual([await readStatus(id), (await readMessage(id)).provider_id], ['delivered', `SM${id}`])
  })

  test('changes nothing for an unknown message', async () => {
    const told = { MessageSid: 'SMunknown', MessageStatus: 'delivered' }
    for (const parameters of [told, { MessageSid: 'SM1' }, { MessageStatus: 'sent' }, {}] as const)
      assert.equal((await call(parameters)).status, 200)
    assert.deepEqual(await query(`select from comms_send where provider_id = 'SMunknown'`), [])
  })

  test('is rejected without a valid signature', async () => {
    const sid = `SM${randomUUID()}`
    const id = await addSentMessage('sms', sid)
    const told = { MessageSid: sid, MessageStatus: 'delivered' }
    const { body, headers } = createSignedCallback(`${BASE_URL}${TWILIO_PATH}`, told)
    const requests = [
      [TWILIO_PATH, { form: told }],
      [TWILIO_PATH, { form: told, headers: { 'x-twilio-signature': 'x' } }],
      [TWILIO_PATH, createSignedCallback(`${BASE_URL}${TWILIO_PATH}`, told, 'another token')],
      [TWILIO_PATH, createSignedCallback(`https://other.example.com${TWILIO_PATH}`, told)],
      [TWILIO_PATH, { body: body.replace('delivered', 'undelivered'), headers }],
      [TWILIO_PATH, { body: `${body}&ErrorCode=1`, headers }],
      [`${TWILIO_PATH}?send_id=${id}`, { body, headers }],
    ] as const
    for (const [path, options] of requests) assertRefused(await api.post(path, options), 400, INVALID_EVENT)
    assert.equal(await readStatus(id), 'sent')
    // A repeated signed event must change nothing.
    for (let n = 0; n < 2; n++) assert.equal((await api.post(TWILIO_PATH, { body, headers })).status, 200)
    assert.equal(await readStatus(id), 'delivered')
  })

  test('is rejected if telephony is not configured', async () => {
    const answer = await call({ MessageSid: 'SM1', MessageStatus: 'sent' }, '', TOKEN, unconfiguredEdge)
    assertRefused(answer, 503, /TELEPHONY_AUTH_TOKEN/)
  })
})

describe('an event of the email provider', () => {
  const tell = (event: object, options: Parameters<typeof createSignedEvent>[1] = {}) =>
    api.post(RESEND_PATH, createSignedEvent(event, options))
  /** Stops the edge's clock at a whole second and returns that second. */
  const stopClock = (t: TestContext): number => {
    const now = Math.floor(Date.now() / 1000) * 1000
    t.mock.method(api.serving.edge.healthCheck, 'now', () => now)
    return now
  }

  for (const [type, more, status, detail] of [
    ['email.sent', {}, 'sent', null],
    ['email.delivered', {}, 'delivered', null],
    ['email.opened', {}, 'sent', null],
    ['email.delivery_delayed', {}, 'sent', null],
    [
      'email.bounced',
      { bounce: { type: 'Permanent', subType: 'General', message: 'of account 7' } },
      'bounced',
      'The mail server of ada@example.com rejected the email (Permanent, General)',
    ],
    ['email.bounced', {}, 'bounced', 'The mail server of ada@example.com rejected the email'],
    ['email.suppressed', {}, 'bounced', 'The email provider no longer sends to ada@example.com'],
    ['email.complained', {}, 'complained', 'ada@example.com marked the email as spam'],
    [
      'email.failed',
      { failed: { reason: 'reached_daily_quota' } },
      'failed',
      'The email provider failed to deliver the message: reached_daily_quota',
    ],
    ['contact.created', {}, 'sent', null],
    ['constructor', {}, 'sent', null],
  ] as const)
    test(`${type} ${JSON.stringify(more)}`, async () => {
      const id = await addSentMessage('email', null)
      const answer = await tell(createMailEvent(type, { id, ...more }))
      assert.deepEqual([answer.status, answer.json], [200, { received: 'true' }])
      const found = await readMessage(id)
      assert.deepEqual([found.status, found.detail], [status, detail])
      assert.equal(found.error_code, status === 'failed' ? 'email.undelivered' : null)
    })

  test('finds a message by our header or Message-ID, and later by the provider id alone', async () => {
    const named: ((id: string) => object)[] = [
      (id) => ({ id }),
      (id) => ({ message_id: `<${id}@mail.example.com>` }),
      (id) => ({ headers: [{ name: 'X-Send-Id', value: id }] }),
    ]
    for (const facts of named) {
      const [id, emailId] = [await addSentMessage('email', null), randomUUID()]
      await tell(createMailEvent('email.sent', { emailId, ...facts(id) }))
      assert.equal((await readMessage(id)).provider_id, emailId)
      await tell(createMailEvent('email.complained', { emailId }))
      await tell(createMailEvent('email.delivered', { emailId }))
      assert.equal(await readStatus(id), 'complained')
    }
  })

  test('changes nothing for an unknown message', async () => {
    const before = await query('select * from comms_send order by id')
    for (const id of [undefined, randomUUID(), 'x'])
      assert.equal(
        (await tell(createMailEvent('email.delivered', id === undefined ? {} : { id }))).status,
        200,
      )
    assert.deepEqual(await query('select * from comms_send order by id'), before)
  })

  test('is accepted if any signature is valid, up to the time tolerance', async (t) => {
    const event = createMailEvent('email.delivered')
    const { body, headers } = createSignedEvent(event)
    const wrong = createSignedEvent(event, {
      secret: `whsec_${Buffer.from('another secret').toString('base64')}`,
    })
    const both = `${wrong.headers['svix-signature']} v2,x ${headers['svix-signature']}`
    const answer = await api.post(RESEND_PATH, { body, headers: { ...headers, 'svix-signature': both } })
    assert.equal(answer.status, 200)
    const now = stopClock(t)
    for (const seconds of [-300, 300])
      assert.equal((await tell(event, { at: now + seconds * 1000 })).status, 200)
  })

  test('is rejected without a valid signature', async (t) => {
    const now = stopClock(t)
    const id = await addSentMessage('email', null)
    const event = createMailEvent('email.delivered', { id })
    const { body, headers } = createSignedEvent(event)
    const right = headers['svix-signature']!
    const hex = createHmac('sha256', Buffer.from(WEBHOOK_SECRET.slice(6), 'base64'))
      .update(`${headers['svix-id']}.${headers['svix-timestamp']}.${body}`)
      .digest('hex')
    const with_ = (more: Readonly<Record<string, string>>) => ({ body, headers: { ...headers, ...more } })
    const requests = {
      unsigned: { json: event },
      'with an empty signature': with_({ 'svix-signature': 'v1,' }),
      'with half of one': with_({ 'svix-signature': right.slice(0, 20) }),
      'with that of another scheme': with_({ 'svix-signature': right.replace('v1,', 'v0,') }),
      'in hexadecimal': with_({ 'svix-signature': `v1,${hex}` }),
      'of another id': with_({ 'svix-id': 'msg_other' }),
      'of another time': with_({ 'svix-timestamp': String(Number(headers['svix-timestamp']) - 1) }),
      'of no time': with_({ 'svix-timestamp': 'now' }),
      'by another secret': createSignedEvent(event, {
        secret: `whsec_${Buffer.from('other').toString('base64')}`,
      }),
      late: createSignedEvent(event, { at: now - 301_000 }),
      early: createSignedEvent(event, { at: now + 301_000 }),
      'of other bytes': { body: `${body} `, headers },
      'of another state': { body: body.replace('delivered', 'complained'), headers },
      'of a body without a type': createSignedEvent({ data: {} }),
      'of a body without a message': createSignedEvent({ type: 'email.delivered', data: {} }),
      'of a huge body': createSignedEvent({ ...event, padding: 'x'.repeat(1_048_576) }),
    }
    for (const [what, options] of Object.entries(requests)) {
      const answer = await api.post(RESEND_PATH, options)
      assert.deepEqual(
        [answer.status, answer.json],
        [400, { detail: INVALID_EVENT, code: 'send.event_invalid' }],
        what,
      )
    }
    assert.equal(await readStatus(id), 'sent')
  })

  test('is rejected without a configured secret', async () => {
    const answer = await unconfiguredEdge.post(
      RESEND_PATH,
      createSignedEvent(createMailEvent('email.delivered')),
    )
    assertRefused(answer, 503, /EMAIL_PROVIDER_WEBHOOK_SECRET/)
  })
})
