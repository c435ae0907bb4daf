import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { SENDER } from '../standins/twilio.ts'
import { startMessageWorker, startProviderStandIns } from './comms-help.ts'
import { startEdgeAndDatabase } from './harness.ts'

/** Senders of text messages: numbers, names and messaging services. */

const standIns = await startProviderStandIns()
const { twilio } = standIns
const SERVICE = `MG${'0123456789abcdef'.repeat(2)}`
const env = {
  ...standIns.env,
  OPEN_AREAS: 'comms,jobs',
  TELEPHONY_MESSAGING_SERVICE_SID: SERVICE,
}
const { api, url } = await startEdgeAndDatabase({ env })
await startMessageWorker(url, env)

const send = (more: object = {}) =>
  api.post('/api/v1/comms/sms/send', { json: { to: '+14155552671', body: 'Hello', ...more } })
const call = () =>
  api.post('/api/v1/comms/call', { json: { to: '+14155552671', script_url: 'https://example.com/' } })
const readLastSender = () => {
  const { parameters } = twilio.taken.at(-1)!
  return [parameters.get('From'), parameters.get('MessagingServiceSid')]
}

describe('a text message comes from', () => {
  test('the configured messaging service', async () => {
    assert.equal((await send()).status, 200)
    assert.deepEqual(readLastSender(), [null, SERVICE])
  })

  for (const [from, sent] of [
    ['Millrace', 'Millrace'],
    [' 7 Mills & C ', '7 Mills & C'],
    ['12345', '12345'],
    ['+1 415 555 0100', '+14155550100'],
  ] as const)
    test(`${from}, which the request names`, async () => {
      assert.equal((await send({ from })).status, 200)
      assert.deepEqual(readLastSender(), [sent, null])
    })

  test('another messaging service, which the request names', async () => {
    const from = `MG${'f'.repeat(32)}`
    assert.equal((await send({ from })).status, 200)
    assert.deepEqual(readLastSender(), [null, from])
  })
})

test('a call comes from the number', async () => {
  assert.equal((await call()).status, 200)
  assert.deepEqual(readLastSender(), [SENDER, null])
})

test('a message of a service that was accepted before a failure is found, not sent twice', async () => {
  const before = twilio.requests
  await send({ body: 'Lost', from: `MG${'a'.repeat(32)}` })
  twilio.mode = () => 'cut after'
  const answer = await send({ body: 'Lost' })
  twilio.mode = () => 'take'
  assert.deepEqual([answer.status, answer.json.sid], [200, twilio.taken.at(-1)!.sid])
  assert.equal(twilio.requests, before + 2)
})

test('the status shows the sender of each channel', async () => {
  const { sms, call } = (await api.get('/api/v1/comms/status')).json
  assert.deepEqual([sms.from, call.from], [SERVICE, SENDER])
})

test('without a number, text messages are sent and calls are refused', async () => {
  const { TELEPHONY_PHONE_NUMBER: _, ...rest } = env as Record<string, string>
  const { api: other } = await startEdgeAndDatabase({ env: rest })
  const answer = await other.post('/api/v1/comms/call', {
    json: { to: '+14155552671', script_url: 'https://example.com/' },
  })
  assert.deepEqual([answer.status, answer.json.code], [503, 'telephony.not_configured'])
  const { sms, call } = (await other.get('/api/v1/comms/status')).json
  assert.deepEqual([sms.missing, call.missing], [[], ['TELEPHONY_PHONE_NUMBER']])
  const path = '/api/v1/comms/sms/send?background=true'
  const sent = await other.post(path, { json: { to: '+14155552671', body: 'x' } })
  assert.equal(sent.status, 202)
})
