import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Spending, Tables } from '../../edge/routes/system/shapes.ts'
import { PRUNED_TABLES } from '../../sql/retention/retention.ts'
import { storeTableSizes } from '../../sql/system/sizes.ts'
import { createCast } from './accounts-help.ts'
import { startEdge, startEdgeAndDatabase } from './harness.ts'

const env = { SENDS_KEEP_DAYS: '7', AI_USAGE_KEEP_DAYS: '0', WORKER_KEEP_FAILED_SECONDS: '43200' }
const { api, url, query, db } = await startEdgeAndDatabase({ env })
const { admin, moderator, user } = await createCast(api)
const get = (path: string, token = admin.token) => api.get(`/api/v1/system${path}`, { token })

await query(`insert into comms_send (id, channel, job_id, recipients, status, requested_at, settled_at, created_at)
  select gen_random_uuid(), 'sms', gen_random_uuid(), '{x}', 'sent', at, at, at
  from generate_series(0, 9) n, lateral (select now() - n * interval '1 day' as at) times`)
await query(`insert into ai_usage (user_id, action, vendor, model, input_tokens, output_tokens, cost, estimated, success, created_at)
  select 'u', 'chat', 'openai', model, 5, 2, cost, false, true, now() - n * interval '1 day'
  from generate_series(0, 9) n, (values ('small', 0.001), ('large', 0.25), ('odd', null)) m (model, cost)`)

describe('GET /system/tables', () => {
  const tables = async () => {
    const answer = await get('/tables')
    assert.equal(answer.status, 200, answer.text)
    return new Map(Tables.parse(answer.json).tables.map((table) => [table.name, table]))
  }

  test('returns the settings of this edge and the space that they would free now', async () => {
    await query('analyze')
    const all = await tables()
    const { rows, bytes, retention } = all.get('comms_send')!
    assert.equal(rows, 10)
    assert.deepEqual(retention, {
      setting: 'SENDS_KEEP_DAYS',
      days: 7,
      rows: 3,
      bytes: Math.round(bytes * 0.3),
    })
    assert.deepEqual(all.get('ai_usage')!.retention, {
      setting: 'AI_USAGE_KEEP_DAYS',
      days: null,
      rows: null,
      bytes: null,
    })
    assert.deepEqual(all.get('job')!.retention, {
      setting: 'WORKER_KEEP_FAILED_SECONDS',
      days: 0.5,
      rows: null,
      bytes: null,
    })
    assert.equal(all.get('account')!.retention, null)
    for (const { table } of PRUNED_TABLES)
      assert.ok(all.get(table)!.retention!.setting.endsWith('_DAYS'), table)
  })

  test('shows growth once an earlier day exists', async () => {
    const { growth, oldest_day } = (await tables()).get('ai_usage')!
    assert.deepEqual(growth, { day: null, week: null, month: null })
    assert.match(oldest_day!, /^\d{4}-\d\d-\d\d$/)
    await db.one(storeTableSizes())
    await query(`update table_size set day = day - 7, rows = rows - 5, bytes = bytes - 100`)
    const later = (await tables()).get('ai_usage')!
    assert.deepEqual(later.growth, { day: null, week: { rows: 5, bytes: 100 }, month: null })
    assert.deepEqual(later.bytes_by_day, [
      ...Array(23).fill(null),
      later.bytes - 100,
      ...Array(6).fill(null),
      later.bytes,
    ])
  })
})

describe('GET /system/spending', () => {
  test('returns models and messages of the last days', async () => {
    const answer = await get('/spending?days=3')
    assert.equal(answer.status, 200, answer.text)
    const { from, to, models, sends } = Spending.parse(answer.json)
    assert.equal((Date.parse(to) - Date.parse(from)) / 86_400_000, 2)
    assert.deepEqual(
      models.map(({ model_id, requests, tokens, cost, unpriced_requests, days }) => [
        ...[model_id, requests, tokens, cost, unpriced_requests],
        days.map(({ day }) => day).length,
      ]),
      [
        ['large', 3, 21, 0.75, 0, 3],
        ['small', 3, 21, 0.003, 0, 3],
        ['odd', 3, 21, null, 3, 3],
      ],
    )
    assert.equal(sends.length, 3)
    const none = { delivered: 0, bounced: 0, complained: 0, failed: 0, unknown: 0, cancelled: 0, waiting: 0 }
    assert.deepEqual(sends[2], { day: to, channel: 'sms', sent: 1, ...none })
    assert.equal((await get('/spending')).json.sends.length, 10)
  })

  test('accepts one day to one year', async () => {
    for (const days of ['0', '367', 'x', '1.5'])
      assert.equal((await get(`/spending?days=${days}`)).status, 422, days)
    for (const days of ['1', '366']) assert.equal((await get(`/spending?days=${days}`)).status, 200, days)
  })
})

test('both routes are limited to admins', async () => {
  const basic = await startEdge(url, { env: { AUTH_LEVEL: 'basic' } })
  for (const path of ['/tables', '/spending']) {
    for (const { token } of [moderator, user]) assert.equal((await get(path, token)).status, 403, path)
    assert.equal((await basic.get(`/api/v1/system${path}`, { token: user.token })).status, 403, path)
    assert.equal((await api.get(`/api/v1/system${path}`)).status, 401, path)
  }
})
