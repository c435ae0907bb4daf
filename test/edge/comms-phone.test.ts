import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { until } from '../until.ts'
import { startMessageWorker, startProviderStandIns } from './comms-help.ts'
import { type Answered, startEdge, startEdgeAndDatabase } from './harness.ts'

/** Tests text messages and calls with an edge, a worker, the real SDKs and stand-ins for the providers. */

const standIns = await startProviderStandIns()
const { twilio } = standIns
const env = { ...standIns.env, OPEN_AREAS: 'comms,jobs' }
const { api, url, query } = await startEdgeAndDatabase({ env })
await startMessageWorker(url, env)

const RECIPIENT = '+491711234567'
let numbers = 0
const createNumber = (): string => `+4917112${String(++numbers).padStart(5, '0')}`
const post = (path: string, json: unknown, headers = {}): Promise<Answered> =>
  api.post(`/api/v1/comms${path}`, { json, headers })
const readLastMessage = async () =>
  (await query('select * from comms_send order by created_at desc, id desc limit 1'))[0]!

describe('POST /comms/sms/send', () => {
  const send = (more: object = {}): Promise<Answered> =>
    post('/sms/send', { to: createNumber(), body: 'Hello', ...more })

  test('answers with the sid and the normalized number', async () => {
    const answer = await send({ to: ' +49 171 / 123-4567 ' })
    const { id, sid, ...rest } = answer.json
    assert.deepEqual(
      [answer.status, rest],
      [
        200,
        {
          to: RECIPIENT,
          status: 'queued',
          segments: 1,
          message: 'The provider accepted the message, in 1 part',
        },
      ],
    )
    assert.deepEqual([twilio.taken.at(-1)!.sid, twilio.taken.at(-1)!.to], [sid, RECIPIENT])
    const row = await readLastMessage()
    assert.deepEqual([row.id, row.provider_id], [id, sid])
  })

  test('counts the parts by encoding', async () => {
    for (const [body, segments] of [
      ['a'.repeat(160), 1],
      ['a'.repeat(161), 2],
      ['検'.repeat(71), 2],
      ['€'.repeat(1600), 22],
    ] as const)
      assert.equal((await send({ body })).json.segments, segments)
  })

  for (const [what, more, name] of [
    ['no number', { to: undefined }, 'to'],
    ['a number of no country', { to: '4155552671' }, 'to'],
    ['a short number', { to: '+1415555' }, 'to'],
    ['a long number', { to: '+141555526711' }, 'to'],
    ['letters', { to: '+1415555CALL' }, 'to'],
    ['an unknown country', { to: '+999123456789' }, 'to'],
    ['an extension', { to: '+14155552671 ext. 5' }, 'to'],
    ['a number that is none', { to: 14155552671 }, 'to'],
    ['no text', { body: '' }, 'body'],
    ['white space', { body: ' \n' }, 'body'],
    ['1601 characters', { body: 'a'.repeat(1601) }, 'body'],
    ['a sender of 12 letters', { from: 'Millrace Ltd' }, 'from'],
    ['a sender of 2 digits', { from: '12' }, 'from'],
    ['a sender with other letters', { from: 'Mühle' }, 'from'],
    ['a sender that is no number', { from: '+999123456789' }, 'from'],
    ['a sender of another kind', { from: `AC${'0'.repeat(32)}` }, 'from'],
    ['an empty sender', { from: '' }, 'from'],
    ['an unknown field', { sender: '+14155552671' }, undefined],
  ] as const) {
    test(`422 for ${what}`, async () => {
      const before = twilio.requests
      const answer = await send(more)
      assert.equal(answer.status, 422)
      assert.deepEqual(answer.json.errors[0].loc, name === undefined ? ['body'] : ['body', name])
      assert.equal(twilio.requests, before)
    })
  }

  test("502 if the provider refuses, with our text because the provider's is confidential", async () => {
    twilio.mode = () => ({ status: 400, body: { code: 21610, message: 'words', status: 400 } })
    const answer = await send()
    twilio.mode = () => 'take'
    const detail =
      'The telephony provider refused the request: the number has unsubscribed from the sender (error 21610)'
    assert.deepEqual([answer.status, answer.json], [502, { detail, code: 'telephony.refused' }])
  })

  test('a rate limit of the provider is retried after its Retry-After', async () => {
    const before = twilio.requests
    const startedAt = Date.now()
    twilio.mode = () =>
      twilio.requests === before + 1 ? { status: 429, headers: { 'retry-after': '1' } } : 'take'
    const answer = await send()
    twilio.mode = () => 'take'
    assert.deepEqual([answer.status, twilio.requests], [200, before + 2])
    assert.ok(Date.now() - startedAt >= 950, `${Date.now() - startedAt} ms`)
  })

  test('a message that the provider accepted before failing is found, not sent twice', async () => {
    for (const mode of ['cut after', 'error after', 'garbage'] as const) {
      const before = twilio.taken.length
      twilio.mode = () => mode
      const answer = await send()
      twilio.mode = () => 'take'
      assert.deepEqual([answer.status, answer.json.sid], [200, twilio.taken.at(-1)!.sid], mode)
      assert.equal(twilio.taken.length, before + 1)
    }
  })

  test('an undetermined message is listed as unknown and resolved when it appears', async () => {
    const before = twilio.requests
    twilio.mode = () => 'cut before'
    const answer = await send()
    twilio.mode = () => 'take'
    assert.deepEqual([answer.status, answer.json.sid, answer.json.status], [200, null, 'unknown'])
    assert.equal(twilio.requests, before + 1)
    const { id } = await readLastMessage()
    const listed = await api.get('/api/v1/comms/sends?status=unknown&channel=sms')
    assert.deepEqual(
      listed.json.map((one: { id: string }) => one.id),
      [id],
    )
    assert.ok((await api.get('/api/v1/comms/status')).json.unknown_sends >= 1)
  })

  test('waits for a provider that does not accept it for now, after the caller too', async () => {
    const before = twilio.requests
    twilio.mode = () => 'error before'
    const hasty = await startEdge(url, { env: { ...env, REQUEST_WAIT_SECONDS: '1' } })
    const json = { to: createNumber(), body: 'Hello' }
    const answer = await hasty.post('/api/v1/comms/sms/send', { json })
    assert.equal(answer.status, 202, answer.text)
    const reason = 'The telephony provider could not be reached or failed: HTTP status 500'
    await until('it waits with the reason', async () => {
      const { status, detail } = await readLastMessage()
      return status === 'queued' && detail === reason
    })
    twilio.mode = () => 'take'
    await until('it is sent', async () => (await readLastMessage()).status === 'sent')
    assert.ok(twilio.requests > before + 1)
  })
})

describe('POST /comms/call', () => {
  const send = (more: object = {}): Promise<Answered> =>
    post('/call', { to: createNumber(), script_url: 'https://example.com/script.xml', ...more })

  test('answers with the sid', async () => {
    const answer = await send({ to: RECIPIENT, timeout: 5 })
    const { id, sid, ...rest } = answer.json
    assert.deepEqual(
      [answer.status, rest],
      [200, { to: RECIPIENT, status: 'queued', message: 'The provider accepted the call' }],
    )
    assert.equal((await readLastMessage()).id, id)
    const { parameters, sid: theirs } = twilio.taken.at(-1)!
    assert.deepEqual(
      [theirs, parameters.get('Url'), parameters.get('Timeout')],
      [sid, 'https://example.com/script.xml', '5'],
    )
  })

  for (const [what, more, name] of [
    ['a bad number', { to: '123' }, 'to'],
    ['no script', { script_url: undefined }, 'script_url'],
    ['a script that is no URL', { script_url: '/script' }, 'script_url'],
    ['a script that is a file', { script_url: 'file:///etc/passwd' }, 'script_url'],
    ['4 s', { timeout: 4 }, 'timeout'],
    ['601 s', { timeout: 601 }, 'timeout'],
    ['half a second', { timeout: 5.5 }, 'timeout'],
  ] as const) {
    test(`422 for ${what}`, async () => {
      const answer = await send(more)
      assert.equal(answer.status, 422)
      assert.deepEqual(answer.json.errors[0].loc, ['body', name])
    })
  }

  test('502 if the provider refuses; an accepted call is found', async () => {
    twilio.mode = () => ({ status: 400, body: { code: 21205, status: 400 } })
    const refused = await send()
    assert.deepEqual([refused.status, /the script URL/.test(refused.json.detail)], [502, true])
    twilio.mode = () => 'cut after'
    const found = await send()
    twilio.mode = () => 'take'
    assert.deepEqual([found.status, found.json.sid], [200, twilio.taken.at(-1)!.sid])
  })
})
