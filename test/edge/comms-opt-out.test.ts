import assert from 'node:assert/strict'
import { after, beforeEach, describe, test } from 'node:test'
import { createSignedCallback } from '../standins/twilio.ts'
import { until } from '../until.ts'
import { createCast } from './accounts-help.ts'
import { makeDue, startMessageWorker, startProviderStandIns } from './comms-help.ts'
import { startEdgeAndDatabase } from './harness.ts'

/** A number whose owner has opted out of text messages gets none until an admin or the owner lifts that. */

const standIns = await startProviderStandIns()
const { twilio } = standIns
const env = { ...standIns.env, OPEN_AREAS: 'comms,jobs', PUBLIC_BASE_URL: 'https://mill.example.com' }
const { api, url, query } = await startEdgeAndDatabase({ env })
await startMessageWorker(url, env)
const { admin } = await createCast(api)

const BASE = `http://127.0.0.1:${api.port}`
const NUMBER = '+14155552671'
const PATH = '/api/v1/comms/suppressions'
const send = (more: object = {}) =>
  api.post('/api/v1/comms/sms/send', { json: { to: NUMBER, body: 'Hello', ...more } })
const list = async () => (await api.get(PATH, { token: admin.token })).json
const lift = () => api.call('DELETE', `${PATH}/${encodeURIComponent(NUMBER)}`, { token: admin.token })
const SUPPRESSED = {
  detail: `Text messages to ${NUMBER} are suppressed because its owner has opted out. An admin can lift the suppression.`,
  code: 'telephony.suppressed',
}
async function optOut(): Promise<void> {
  twilio.mode = () => ({ status: 400, body: { code: 21610, message: 'words', status: 400 } })
  const answer = await send()
  twilio.mode = () => 'take'
  assert.deepEqual([answer.status, answer.json.code], [502, 'telephony.refused'])
}
/** Posts an incoming message, as Twilio does. */
const receive = (parameters: Readonly<Record<string, string>>) => {
  const path = '/api/v1/comms/webhooks/twilio'
  const all = { MessageSid: 'SM1', SmsSid: 'SM1', SmsStatus: 'received', From: NUMBER, To: '+14155550100' }
  return api.post(path, createSignedCallback(`${env.PUBLIC_BASE_URL}${path}`, { ...all, ...parameters }))
}

beforeEach(() => query('delete from comms_suppression'))
after(() => {
  twilio.mode = () => 'take'
})

test('later messages are refused without a request to Twilio, until an admin lifts it', async () => {
  await optOut()
  const [{ created_at: _, send_id, ...one }, ...others] = await list()
  assert.deepEqual(
    [one, others],
    [{ channel: 'sms', address: NUMBER, stream: 'transactional', reason: 'opted_out' }, []],
  )
  assert.equal((await api.get(`/api/v1/comms/sends/${send_id}`)).json.status, 'failed')
  const before = twilio.requests
  const answer = await send({ from: 'Millrace' })
  assert.deepEqual([answer.status, answer.json], [409, SUPPRESSED])
  assert.equal(twilio.requests, before)
  assert.equal((await send({ to: '+14155550123' })).status, 200, 'another number')
  const call = { to: NUMBER, script_url: 'https://example.com/' }
  assert.equal((await api.post('/api/v1/comms/call', { json: call })).status, 200, 'a call')
  assert.equal((await lift()).status, 204)
  assert.equal((await send()).status, 200)
})

test('a message that waits is refused when it is due', async () => {
  const sendAt = new Date(Date.now() + 3_600_000).toISOString()
  const { id } = (await send({ send_at: sendAt })).json
  await optOut()
  const before = twilio.requests
  await makeDue(query, id)
  const read = async () => (await api.get(`/api/v1/comms/sends/${id}`)).json
  await until('it has failed', async () => (await read()).status === 'failed')
  assert.equal((await read()).detail, SUPPRESSED.detail)
  assert.equal(twilio.requests, before)
})

test('an opt-out that Twilio reports only after it took the message is remembered once', async () => {
  assert.equal((await send()).status, 200)
  const taken = twilio.taken.at(-1)!
  const report = (code: string) => twilio.postStatus(BASE, taken, 'undelivered', { ErrorCode: code })
  assert.equal((await report('21610')).status, 200)
  assert.deepEqual(
    (await list()).map(({ address, reason }: Record<string, unknown>) => [address, reason]),
    [[NUMBER, 'opted_out']],
  )
  assert.deepEqual((await send()).json, SUPPRESSED)
  await lift()
  assert.equal((await report('21610')).status, 200)
  assert.deepEqual(await list(), [], 'a repeated callback does not restore it')
  assert.equal((await send()).status, 200)
  await twilio.postStatus(BASE, twilio.taken.at(-1)!, 'undelivered', { ErrorCode: '30003' })
  assert.deepEqual(await list(), [], 'another error')
})

test('another refusal suppresses nothing', async () => {
  twilio.mode = () => ({ status: 400, body: { code: 21614, message: 'words', status: 400 } })
  assert.equal((await send()).status, 502)
  twilio.mode = () => 'take'
  assert.deepEqual(await list(), [])
})

describe('an incoming message', () => {
  for (const parameters of [
    { Body: ' start ' },
    { Body: 'UNSTOP' },
    { Body: 'Los', OptOutType: 'START' },
  ] as const)
    test(`${JSON.stringify(parameters)} lifts the suppression of its number`, async () => {
      await optOut()
      const answer = await receive(parameters)
      assert.deepEqual([answer.status, answer.text], [204, ''])
      assert.deepEqual(await list(), [])
      assert.equal((await send()).status, 200)
    })

  for (const parameters of [
    { Body: 'Start the mill' },
    { Body: 'STOP', OptOutType: 'STOP' },
    { Body: 'START', OptOutType: 'HELP' },
    { Body: 'START', From: '+14155550123' },
  ])
    test(`${JSON.stringify(parameters)} changes nothing`, async () => {
      await optOut()
      assert.equal((await receive(parameters)).status, 204)
      assert.equal((await list()).length, 1)
    })

  test('without the signature of Twilio is refused', async () => {
    await optOut()
    const path = '/api/v1/comms/webhooks/twilio'
    const forged = createSignedCallback(`${env.PUBLIC_BASE_URL}${path}`, { Body: 'START', From: NUMBER }, 'x')
    assert.equal((await api.post(path, forged)).status, 400)
    assert.equal((await list()).length, 1)
  })
})
