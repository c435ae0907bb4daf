import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createTestDatabase } from '../database.ts'
import { startEdge } from '../edge/harness.ts'
import { startOwnWorker } from '../edge/own-worker.ts'
import { Client } from '../service.ts'
import { createMailEvent, createSignedEvent, startResend, WEBHOOK_SECRET } from '../standins/resend.ts'
import { startMailServer } from '../standins/smtp.ts'
import { createTwilioEnv, startTwilio } from '../standins/twilio.ts'
import { until } from '../until.ts'

/** Follows messages from the request to the delivery status. The providers call a real edge. */

const { url } = await createTestDatabase()
const [twilio, mail, resend] = await Promise.all([startTwilio(), startMailServer(), startResend()])
after(() => Promise.all([twilio.stop(), mail.stop(), resend.stop()]))
const env = {
  ...createTwilioEnv(twilio.url),
  EMAIL_SMTP_URL: mail.url,
  EMAIL_PROVIDER_FROM_EMAIL: 'service@example.com',
  EMAIL_PROVIDER_WEBHOOK_SECRET: WEBHOOK_SECRET,
  PUBLIC_BASE_URL: 'https://mill.example.com',
  AUTH_LEVEL: 'none',
  WORKER_THREADS: '1',
}
const edge = await startEdge(url, { env })
await startOwnWorker(url, 'comms', env)
const baseUrl = `http://127.0.0.1:${edge.port}`
const client = new Client(edge.port)

const post = async (path: string, body: object): Promise<Record<string, string>> => {
  const response = await client.post(`/api/v1/comms${path}`, body)
  assert.equal(response.status, 200)
  return (await response.json()) as Record<string, string>
}
const listSends = async (status: string): Promise<Record<string, string>[]> =>
  (await (await fetch(`${baseUrl}/api/v1/comms/sends?status=${status}`)).json()) as Record<string, string>[]

test('reports the delivery of text messages and calls', async () => {
  await post('/sms/send', { to: '+491711234567', body: 'Hello' })
  await post('/call', { to: '+491711234567', script_url: 'https://example.com/script' })
  const [text, call] = twilio.taken
  assert.equal((await twilio.postStatus(baseUrl, text!, 'delivered')).status, 200)
  assert.equal((await twilio.postStatus(baseUrl, call!, 'no-answer')).status, 200)
  assert.deepEqual(
    (await listSends('delivered')).map((send) => send.provider_id),
    [text!.sid],
  )
  assert.deepEqual(
    (await listSends('failed')).map((send) => [send.provider_id, send.provider_status]),
    [[call!.sid, 'no-answer']],
  )
})

test('accepts a callback that arrives before the answer to its text message', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  twilio.blockedBy = promise
  const sending = post('/sms/send', { to: '+491711234568', body: 'Hello' })
  const text = await until('the provider has the message', () => Promise.resolve(twilio.taken[2] ?? null))
  assert.equal((await twilio.postStatus(baseUrl, text, 'delivered')).status, 200)
  resolve()
  twilio.blockedBy = null
  assert.deepEqual([(await sending).sid, (await sending).status], [text.sid, 'delivered'])
  assert.equal(twilio.taken.length, 3)
})

test('reports the delivery of mail', async () => {
  const { id } = await post('/email/send', { to: ['ada@example.com'], subject: 'Hello', text: 'Hello' })
  assert.ok(mail.raw.at(-1)!.includes(`<${id}@example.com>`), 'the Message-ID')
  const postEvent = async (type: string) =>
    fetch(`${baseUrl}/api/v1/comms/webhooks/resend`, {
      method: 'POST',
      ...createSignedEvent(createMailEvent(type, { id: id!, bounce: { type: 'Permanent' } })),
    })
  for (const type of ['email.bounced', 'email.delivered']) assert.equal((await postEvent(type)).status, 200)
  assert.deepEqual(
    (await listSends('bounced')).map((send) => send.id),
    [id],
  )
  const again = { to: ['ADA@example.com'], subject: 'Hello', text: 'Hello' }
  assert.equal((await client.post('/api/v1/comms/email/send', again)).status, 409)
  assert.equal(mail.taken.length, 1)
})
