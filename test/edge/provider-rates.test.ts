import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { until } from '../until.ts'
import { CHAT_PATH, postStream, startChatService } from './ai-help.ts'
import { makeDue, startMessageWorker, startProviderStandIns } from './comms-help.ts'
import { startEdgeAndDatabase } from './harness.ts'

/** The rates of providers, with edges, workers, the real SDKs and stand-ins for the providers. */

let numbers = 0
const createNumber = (): string => `+4917113${String(++numbers).padStart(5, '0')}`

describe('RATE_LIMIT_SMS', async () => {
  const STARTS = 10
  const SENDS = 30
  // Timers fire up to a millisecond early, and times are whole milliseconds.
  const CLOCK_MS = 5
  const { env: providers, twilio } = await startProviderStandIns()
  const env = { ...providers, OPEN_AREAS: 'comms,jobs', RATE_LIMIT_SMS: `${STARTS}/1` }
  const { api, url, query } = await startEdgeAndDatabase({ env })
  await startMessageWorker(url, env)
  await startMessageWorker(url, env)
  const send = (more: object = {}, headers = {}) =>
    api.post('/api/v1/comms/sms/send', { json: { to: createNumber(), body: 'Hello', ...more }, headers })

  test('spaces the messages of two workers, and all of them are sent', async () => {
    const answers = await Promise.all(Array.from({ length: SENDS }, () => send()))
    assert.deepEqual(
      answers.filter(({ status }) => status !== 200),
      [],
    )
    const times = twilio.taken.map(({ at }) => at).sort((a, b) => a - b)
    assert.equal(times.length, SENDS)
    const [first] = await query(
      'select extract(epoch from min(created_at))::float8 * 1000 as at from comms_send',
    )
    // A busy machine delays messages, but none arrives before its start.
    const early = times.filter((at, n) => at < (first!.at as number) + (n * 1000) / STARTS - CLOCK_MS)
    assert.deepEqual(early, [])
    const [tries] = await query(`select max(tries) as most from job where name = 'comms.sms'`)
    assert.deepEqual(tries, { most: 1 })
  })

  test('shows why a message waits, and until when', async () => {
    const taken = twilio.taken.length
    await query(`update start_rate set next_at = now() + interval '10 minutes' where name = 'provider:sms'`)
    const queued = await send({}, { prefer: 'respond-async' })
    const [{ id }] = (await query(
      'select id from comms_send where job_id = $1 or id = $1 order by created_at desc limit 1',
      [queued.json.job_id ?? queued.json.id],
    )) as [{ id: string }]
    const read = async () => (await api.get(`/api/v1/comms/sends/${id}`)).json
    const waiting = await until('it waits', async () => {
      const json = await read()
      return json.next_attempt_at === null ? null : json
    })
    assert.deepEqual([waiting.status, waiting.requests], ['queued', 0])
    assert.match(waiting.detail, /^RATE_LIMIT_SMS allows the next request to the provider in \d+ s$/)
    const minutes = (Date.parse(waiting.next_attempt_at) - Date.now()) / 60_000
    assert.ok(minutes > 8 && minutes < 11, `${minutes} minutes`)
    assert.equal(twilio.taken.length, taken)

    await query(`update start_rate set next_at = now() where name = 'provider:sms'`)
    await query(`update comms_send set send_at = now() where id = $1`, [id])
    await makeDue(query, id)
    await until('it is sent', async () => (await read()).status === 'sent')
  })
})

describe('RATE_LIMIT_AI_PROVIDER', async () => {
  const { api, models, query } = await startChatService({ RATE_LIMIT_AI_PROVIDER: '600/60' })
  const delayStarts = (seconds: number) =>
    query(
      `update start_rate set next_at = clock_timestamp() + make_interval(secs => $1) where name = 'provider:ai:openai'`,
      [seconds],
    )
  const ask = () => api.post(CHAT_PATH, { json: { message: 'Hello?' } })

  test('lets a chat wait for its start', async () => {
    assert.equal((await ask()).status, 200)
    const startedAt = performance.now()
    await delayStarts(1.5)
    assert.equal((await ask()).status, 200)
    assert.ok(performance.now() - startedAt >= 1490)
  })

  test('refuses a chat whose start is too late, and names the time', async () => {
    const asked = models.asked.length
    await delayStarts(600)
    const refused = await ask()
    assert.deepEqual([refused.status, refused.json.code], [503, 'provider.rate_limited'], refused.text)
    const seconds = Number(refused.headers['retry-after'])
    assert.ok(seconds > 500 && seconds <= 600, `${seconds} s`)
    const frames = await (await postStream(api, { message: 'Hello?' })).waitForEnd()
    const { event, data } = frames.at(-1)!
    assert.deepEqual([event, data.code], ['error', 'provider.rate_limited'])
    const completion = await api.post('/v1/chat/completions', {
      json: { model: 'assistant', messages: [{ role: 'user', content: 'Hello?' }] },
    })
    assert.equal(completion.status, 503, completion.text)
    assert.equal(models.asked.length, asked)
  })

  test('lets the fallback model of another provider answer', async () => {
    await delayStarts(600)
    const changed = await api.call('PATCH', '/api/v1/ai/agents/assistant', {
      json: { fallback_model_id: 'mistral/back-1' },
    })
    assert.equal(changed.status, 200, changed.text)
    const answer = await ask()
    assert.deepEqual([answer.status, models.asked.at(-1)!.body.model], [200, 'back-1'], answer.text)
  })
})
