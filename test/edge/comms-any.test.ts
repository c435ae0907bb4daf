import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { until } from '../until.ts'
import { startMessageWorker, startProviderStandIns } from './comms-help.ts'
import { type Answered, startEdgeAndDatabase } from './harness.ts'

/**
 * Tests the behaviour that all channels share, with an edge, a worker, the real SDKs and stand-ins for the providers.
 */

const standIns = await startProviderStandIns()
const { twilio, mail } = standIns
const env = { ...standIns.env, OPEN_AREAS: 'comms,jobs' }
const { api, url, query } = await startEdgeAndDatabase({ env })
await startMessageWorker(url, env)

let numbers = 0
const createNumber = (): string => `+4917112${String(++numbers).padStart(5, '0')}`
const post = (path: string, json: unknown, headers = {}): Promise<Answered> =>
  api.post(`/api/v1/comms${path}`, { json, headers })
const readLastMessage = async () =>
  (await query('select * from comms_send order by created_at desc, id desc limit 1'))[0]!

describe('every channel', () => {
  const routes: Readonly<Record<string, () => object>> = {
    '/email/send': () => ({ to: ['a@example.com'], subject: 's', text: 't' }),
    '/sms/send': () => ({ to: createNumber(), body: 't' }),
    '/call': () => ({ to: createNumber(), script_url: 'https://example.com/' }),
  }
  const sent = (): number => mail.taken.length + twilio.taken.length

  for (const [path, body] of Object.entries(routes)) {
    test(`${path} in the background answers 202, and the result is on the job`, async () => {
      const answer = await post(`${path}?background=true`, body())
      assert.equal(answer.status, 202)
      const job = await until('the job ends', async () => {
        const { json } = await api.get(answer.headers.location as string)
        return json.status === 'done' && json
      })
      assert.match(job.result.status, /^(sent|queued)$/)
      assert.equal((await readLastMessage()).job_id, answer.json.job_id)
    })

    test(`${path} sends once per Idempotency-Key`, async () => {
      const [before, one] = [sent(), body()]
      const headers = { 'idempotency-key': `key of ${path}` }
      const first = await post(path, one, headers)
      const second = await post(path, one, headers)
      assert.deepEqual([second.status, second.json], [first.status, first.json])
      assert.equal(sent(), before + 1)
      const other = { ...body(), ...('subject' in one ? { subject: 'another' } : {}) }
      const mismatch = await post(path, other, headers)
      assert.deepEqual([mismatch.status, mismatch.json.errors[0].loc], [422, ['header', 'idempotency-key']])
    })

    test(`${path} accepts JSON only`, async () => {
      const form = await api.post(`/api/v1/comms${path}`, { form: { to: 'x' } })
      assert.equal(form.status, 415)
      const broken = await api.post(`/api/v1/comms${path}`, {
        body: '{',
        headers: { 'content-type': 'application/json' },
      })
      assert.equal(broken.status, 400)
      assert.equal((await api.get(`/api/v1/comms${path}`)).status, 405)
      assert.equal((await post(`${path}?background=perhaps`, body())).status, 422)
    })
  }
})
