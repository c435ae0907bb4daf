import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { until } from '../until.ts'
import { createCast } from './accounts-help.ts'
import { makeDue, startMessageWorker, startProviderStandIns } from './comms-help.ts'
import { type Answered, startEdge, startEdgeAndDatabase } from './harness.ts'
import { assertRefused } from './orgs-help.ts'

/** The edge must accept scheduled messages immediately. A worker must send them when due, unless they are cancelled. */

const standIns = await startProviderStandIns()
const { mail, twilio } = standIns
const env = {
  ...standIns.env,
  OPEN_AREAS: 'ai',
  AUTH_LEVEL: 'basic',
}
const { api, url, query } = await startEdgeAndDatabase({ env })
const openEdge = await startEdge(url, { env: { ...env, OPEN_AREAS: 'comms' } })
await startMessageWorker(url, env)
const { admin, user, newcomer } = await createCast(api)
const otherAccount = await newcomer()

const HOUR_MS = 3_600_000
let numbers = 0
const createNumber = (): string => `+1415555${String(++numbers).padStart(4, '0')}`
const inMs = (ms = HOUR_MS): string => new Date(Date.now() + ms).toISOString()
const post = (path: string, json: unknown, headers = {}): Promise<Answered> =>
  api.post(`/api/v1/comms${path}`, { json, headers, token: user.token })
const cancel = (id: string, token: string | undefined = user.token): Promise<Answered> =>
  api.call('DELETE', `/api/v1/comms/sends/${id}`, { ...(token === undefined ? {} : { token }) })
const readMessage = async (id: string) =>
  (await api.get(`/api/v1/comms/sends/${id}`, { token: user.token })).json
const readJob = async (id: string) => (await api.get(`/api/v1/jobs/${id}`, { token: user.token })).json

const CHANNELS: Readonly<Record<string, [path: string, body: () => object]>> = {
  email: ['/email/send', () => ({ to: ['a@example.com'], subject: 's', text: 't' })],
  sms: ['/sms/send', () => ({ to: createNumber(), body: 't' })],
  call: ['/call', () => ({ to: createNumber(), script_url: 'https://example.com/' })],
}
const countRequests = (): number => mail.requests + twilio.requests
const schedule = async (channel = 'email', more: object = {}): Promise<{ id: string }> => {
  const [path, body] = CHANNELS[channel]!
  const answer = await post(path, { ...body(), send_at: inMs(), ...more })
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}

for (const [channel, [path, body]] of Object.entries(CHANNELS))
  describe(`${path} with send_at`, () => {
    test('is accepted immediately, and can be cancelled by its job', async () => {
      const before = countRequests()
      const json = { ...body(), send_at: inMs() }
      const answer = await post(path, json)
      assert.equal(answer.status, 200, answer.text)
      const { id, ...rest } = answer.json
      const { to, sid, segments } = rest
      assert.deepEqual(rest, {
        ...{ to: (json as { to?: unknown }).to, status: 'scheduled' },
        message: `The message is scheduled for ${json.send_at}`,
        ...(channel === 'email' ? {} : { sid: null }),
        ...(channel === 'sms' ? { segments: 1 } : {}),
      })
      assert.deepEqual([to, sid ?? null, segments ?? 1], [(json as { to?: unknown }).to, null, 1])
      const { status, send_at, job_id, requests: made } = await readMessage(id)
      assert.deepEqual([status, send_at, made], ['scheduled', json.send_at, 0])
      assert.equal((await readJob(job_id)).status, 'queued')
      const [due] = await query('select run_at from job where id = $1', [job_id])
      assert.equal((due!.run_at as Date).toISOString(), json.send_at)

      const cancelled = await cancel(id)
      assert.deepEqual([cancelled.status, cancelled.json.status], [200, 'cancelled'])
      assert.equal((await readJob(job_id)).status, 'cancelled')
      assert.deepEqual((await cancel(id)).json, cancelled.json, 'also twice')
      const listed = await api.get('/api/v1/comms/sends?status=cancelled', { token: user.token })
      assert.ok(listed.json.some((one: { id: string }) => one.id === id))
      assert.equal(countRequests(), before)
    })

    test('is sent at its time, not earlier', async () => {
      const { id } = await schedule(channel)
      await makeDue(query, id, 300)
      const { send_at: sendAt } = await readMessage(id)
      const row = await until('the message is sent', async () => {
        const row = await readMessage(id)
        return row.status === 'sent' && row
      })
      assert.ok(row.requested_at >= sendAt, `${row.requested_at} is before ${sendAt}`)
      assertRefused(await cancel(id), 409, 'The message can no longer be cancelled: it is sent')
      if (channel === 'email') {
        const date = /^Date: (.*)$/m.exec(mail.raw.at(-1)!)![1]!
        assert.equal(Date.parse(date), Math.floor(Date.parse(sendAt) / 1000) * 1000)
      }
    })

    test('is scheduled once per key, and another time is another request', async () => {
      const [headers, json] = [{ 'idempotency-key': randomUUID() }, { ...body(), send_at: inMs() }]
      const first = await post(path, json, headers)
      assert.deepEqual((await post(path, json, headers)).json, first.json)
      const changed = await post(path, { ...json, send_at: inMs(2 * HOUR_MS) }, headers)
      assertRefused(changed, 422, 'This Idempotency-Key was already used with a different request')
      assert.equal((await cancel(first.json.id)).status, 200)
      assert.deepEqual((await post(path, json, headers)).json, first.json, 'after it is cancelled, too')
    })

    for (const [what, send_at, detail] of [
      ['that has passed', inMs(-1), 'send_at: must be in the future'],
      ['long ago', '0001-01-01T00:00:00Z', 'send_at: must be in the future'],
      ['too far ahead', inMs(30 * 24 * HOUR_MS + HOUR_MS), 'send_at: must be at most 30 days ahead'],
      ['at the end of time', '9999-12-31T23:59:59Z', 'send_at: must be at most 30 days ahead'],
      ['that is none', 'tomorrow', 'send_at: must be a time such as 2026-03-14T15:00:00Z'],
      ['without seconds', '2999-01-01T12:00Z', 'send_at: must be a time such as 2026-03-14T15:00:00Z'],
      ['in seconds', 1_900_000_000, 'send_at: must be a time such as 2026-03-14T15:00:00Z'],
    ] as const)
      test(`422 for a time ${what}`, async () => {
        const before = await query('select count(*)::int as n from job')
        const answer = await post(path, { ...body(), send_at })
        assert.equal(answer.status, 422, answer.text)
        assert.deepEqual(answer.json.errors[0].loc, ['body', 'send_at'])
        assert.equal(answer.json.detail, detail)
        assert.deepEqual(await query('select count(*)::int as n from job'), before)
      })
  })

test('a time without an offset is UTC', async () => {
  const soon = new Date(Math.ceil(Date.now() / 1000) * 1000 + HOUR_MS)
  const inParis = `${new Date(soon.getTime() + 2 * HOUR_MS).toISOString().slice(0, 19)}+02:00`
  for (const send_at of [inParis, soon.toISOString().slice(0, 19)]) {
    const { id } = await schedule('email', { send_at })
    assert.equal((await readMessage(id)).send_at, soon.toISOString(), send_at)
  }
})

test('a scheduled message does not delay others to the same number', async () => {
  const to = createNumber()
  await schedule('sms', { to })
  assert.equal((await post('/sms/send', { to, body: 'now' })).json.status, 'queued')
  await schedule('call', { to })
  assert.equal((await post('/call', { to, script_url: 'https://example.com/' })).status, 200)
})

test('a recipient suppressed meanwhile gets nothing, and the message has the reason', async () => {
  const { id } = await schedule('email', { to: ['gone@example.com'] })
  await query(
    `insert into comms_suppression (address, reason, send_id) values ('gone@example.com', 'bounced', $1)`,
    [id],
  )
  await makeDue(query, id)
  const row = await until('the message has failed', async () => {
    const row = await readMessage(id)
    return row.status === 'failed' && row
  })
  assert.match(row.detail, /^Mail to gone@example.com is suppressed/)
  const { error } = await until('the job has failed, too', async () => {
    const job = await readJob(row.job_id)
    return job.status === 'failed' && job
  })
  assert.equal(error.code, 'email.suppressed')
  assertRefused(await cancel(id), 409, 'The message can no longer be cancelled: it is failed')
})

describe('cancelling a scheduled message', () => {
  test('is allowed for its sender and admins; for messages without an owner, for admins only', async () => {
    const { id } = await schedule()
    assertRefused(await cancel(id, otherAccount.token), 404, 'Message not found')
    assert.equal((await cancel(id, admin.token)).json.status, 'cancelled')
    const nobodys = await openEdge.post('/api/v1/comms/email/send', {
      json: { to: ['a@example.com'], subject: 's', text: 't', send_at: inMs() },
    })
    const path = `/api/v1/comms/sends/${nobodys.json.id}`
    assert.equal((await openEdge.call('DELETE', path)).status, 403)
    assertRefused(await cancel(nobodys.json.id), 403, 'This requires the role admin')
    assert.equal((await readMessage(nobodys.json.id)).status, 'scheduled')
    assert.equal((await cancel(nobodys.json.id, admin.token)).status, 200)
  })

  test('is 404 for an unknown or invalid id', async () => {
    for (const id of [randomUUID(), 'nonsense', '1'])
      assertRefused(await cancel(id, admin.token), 404, 'Message not found')
  })

  test('gives the same result by its job', async () => {
    for (const channel of ['email', 'sms']) {
      const { id } = await schedule(channel)
      const { job_id } = await readMessage(id)
      const answer = await api.call('DELETE', `/api/v1/jobs/${job_id}`, { token: user.token })
      assert.deepEqual([answer.status, answer.json.status], [202, 'cancelled'])
      assert.equal((await readMessage(id)).status, 'cancelled')
      assert.equal((await cancel(id)).status, 200)
    }
  })

  test('calls the callback URL of the job in the background', async () => {
    const [path, body] = CHANNELS.sms!
    const query_ = `?background=true&callback_url=${encodeURIComponent('https://example.com/hook')}`
    const answer = await post(`${path}${query_}`, { ...body(), send_at: inMs() })
    assert.deepEqual([answer.status, Object.keys(answer.json)], [202, ['job_id']], answer.text)
    const { job_id } = answer.json
    const [send] = await query('select id, status from comms_send where job_id = $1', [job_id])
    assert.equal(send!.status, 'scheduled')
    await cancel(send!.id as string)
    const told = await query(`select type, body::json -> 'data' ->> 'job_id' as job_id from webhook_delivery
      where url = 'https://example.com/hook'`)
    assert.deepEqual(told, [{ type: 'job.cancelled', job_id }])
  })

  test('ends the streams of its job', async () => {
    const { id } = await schedule()
    const { job_id } = await readMessage(id)
    const streaming = api.get(`/api/v1/jobs/${job_id}/events`, { token: user.token })
    await cancel(id)
    assert.match((await streaming).text, /"status":"cancelled"/)
  })
})
