import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createFigureCalculator, percentile, type TallySpan } from '../../edge/routes/queues/figures.ts'
import { addTallies, HISTOGRAM_BOUNDS } from '../../sql/jobs/tallies.ts'
import { bucketOf } from '../../workers/attempts/tally.ts'
import { startEdgeAndDatabase } from './harness.ts'
import { createLedger } from './ledger.ts'

const { api, ...database } = await startEdgeAndDatabase()
const { db, query } = database
const ledger = createLedger(database)
const admin = await api.register('admin@example.com')
const PATH = '/api/v1/queues'
const adminToken = { token: admin.token }
const createHistogram = (seconds: number, count = 1): number[] =>
  Array.from({ length: HISTOGRAM_BOUNDS.length + 1 }, (_, n) => (n === bucketOf(seconds) ? count : 0))
const getQueue = async (name: string, window = '10m') => {
  const { status, json } = await api.get(`${PATH}?window=${window}`, adminToken)
  assert.equal(status, 200)
  return json.queues.find((one: { queue: string }) => one.queue === name)
}
const readEvents = () =>
  query(`select kind, actor_id, data from audit_event where kind like 'queue.%' order by id`)

test('lists every queue, even unused ones', async () => {
  const { json } = await api.get(PATH, adminToken)
  assert.deepEqual([json.window, json.span_seconds], ['10m', 10])
  const names = json.queues.map((one: { queue: string }) => one.queue)
  assert.deepEqual(names, [...names].sort())
  assert.ok(names.includes('documents') && names.includes('voice'))
  assert.deepEqual(await getQueue('voice'), {
    queue: 'voice',
    queued: 0,
    running: 0,
    waiting: 0,
    oldest_at: null,
    workers: 0,
    paused_at: null,
    paused_by: null,
    limit: null,
    ended: 0,
    failed: 0,
    repeated: 0,
    wait: null,
    run: null,
    history: { ended: new Array(60).fill(0), failed: new Array(60).fill(0) },
  })
})

test('shows depth, age and statistics of ended jobs for each window', async () => {
  await ledger.add(admin.id)
  const of = { queue: 'documents', name: 'documents.extract', attempts: 4, run_seconds: 8, wait_seconds: 2 }
  const each = { runs: createHistogram(2, 4), waits: createHistogram(0.5, 4) }
  await db.run(
    addTallies(
      [
        { ...of, ...each, outcome: 'done' },
        { ...of, ...each, outcome: 'failed' },
        { ...of, ...each, outcome: 'retry' },
      ],
      {},
    ),
  )
  for (const [window, spans] of [
    ['10m', 60],
    ['1h', 60],
    ['24h', 72],
    ['7d', 84],
  ] as const) {
    const found = await getQueue('documents', window)
    assert.deepEqual([found.queued, found.running], [1, 0])
    assert.match(found.oldest_at, /Z$/)
    assert.deepEqual([found.ended, found.failed, found.repeated], [8, 4, 4])
    assert.ok(
      found.run.p50 > 1.58 && found.run.p50 <= 2.51 && found.wait.p99 > 0.398 && found.wait.p99 <= 0.631,
    )
    assert.equal(found.history.ended.length, spans)
    assert.equal(
      found.history.ended.reduce((a: number, b: number) => a + b),
      8,
    )
  }
})

test('a pause shows who and when, is stored once, and adds an audit event', async () => {
  const first = await api.post(`${PATH}/ai/pause`, adminToken)
  assert.equal(first.status, 200)
  const { paused_at, ...rest } = first.json
  assert.match(paused_at, /Z$/)
  assert.deepEqual(rest, { queue: 'ai', paused_by: admin.id, limit: null })
  assert.deepEqual((await api.post(`${PATH}/ai/pause`, adminToken)).json, first.json)
  assert.equal((await getQueue('ai')).paused_at, paused_at)
  const resumed = await api.post(`${PATH}/ai/resume`, adminToken)
  assert.deepEqual(resumed.json, { queue: 'ai', paused_at: null, paused_by: null, limit: null })
  await api.post(`${PATH}/ai/resume`, adminToken)
  const limited = await api.call('PATCH', `${PATH}/ai`, { ...adminToken, json: { limit: 5 } })
  assert.deepEqual(limited.json, { queue: 'ai', paused_at: null, paused_by: null, limit: 5 })
  await api.call('PATCH', `${PATH}/ai`, { ...adminToken, json: { limit: 5 } })
  await api.call('PATCH', `${PATH}/ai`, { ...adminToken, json: { limit: null } })
  assert.deepEqual(await readEvents(), [
    { kind: 'queue.paused', actor_id: admin.id, data: { queue: 'ai' } },
    { kind: 'queue.resumed', actor_id: admin.id, data: { queue: 'ai' } },
    { kind: 'queue.limited', actor_id: admin.id, data: { queue: 'ai', limit: 5 } },
    { kind: 'queue.limited', actor_id: admin.id, data: { queue: 'ai', limit: null } },
  ])
})

test('an unknown queue is 404 with the known names, and an invalid limit or window is rejected', async () => {
  for (const answer of [
    await api.post(`${PATH}/nowhere/pause`, adminToken),
    await api.post(`${PATH}/nowhere/resume`, adminToken),
    await api.call('PATCH', `${PATH}/nowhere`, { ...adminToken, json: { limit: 1 } }),
  ]) {
    assert.equal(answer.status, 404)
    assert.match(answer.json.detail, /^There is no queue named nowhere; the queues are accounts, ai, /)
  }
  for (const limit of [0, -1, 1.5, 'many', 1_000_001, undefined])
    assert.equal(
      (await api.call('PATCH', `${PATH}/ai`, { ...adminToken, json: { limit } })).status,
      422,
      `${limit}`,
    )
  assert.equal((await api.get(`${PATH}?window=2h`, adminToken)).status, 422)
})

test('draining and resuming a worker names who requested it', async () => {
  const [{ id }] = (await query(`insert into worker_lease (id, name, queues, expires_at)
    values (gen_random_uuid(), 'host/1', '{ai}', now() + interval '1 hour') returning id`)) as [
    { id: string },
  ]
  const path = `/api/v1/workers/${id}`
  assert.deepEqual((await api.post(`${path}/drain`, adminToken)).json, { id, name: 'host/1', drained: true })
  assert.deepEqual((await api.post(`${path}/resume`, adminToken)).json, {
    id,
    name: 'host/1',
    drained: false,
  })
  assert.deepEqual(
    await query(`select kind, actor_id, data from audit_event where kind like 'worker.%' order by id`),
    [
      { kind: 'worker.drained', actor_id: admin.id, data: { worker: 'host/1' } },
      { kind: 'worker.resumed', actor_id: admin.id, data: { worker: 'host/1' } },
    ],
  )
  await query('delete from worker_lease where id = $1', [id])
  for (const unknown of [id, 'nonsense'])
    assert.equal((await api.post(`/api/v1/workers/${unknown}/drain`, adminToken)).status, 404)
})

describe('queue statistics', () => {
  const span = (of: number, outcome: TallySpan[2], attempts: number, seconds = 1): TallySpan => [
    'a',
    of,
    outcome,
    attempts,
    createHistogram(seconds, attempts),
    createHistogram(seconds, attempts),
  ]

  test('cover only their window and queue', () => {
    const last = 1000
    const figures = createFigureCalculator(
      [
        span(last, 'done', 1),
        span(last - 59, 'failed', 2),
        span(last - 60, 'done', 4),
        span(last + 1, 'done', 8),
      ],
      '10m',
      last * 10_000 + 5,
    )
    const { ended, failed, history } = figures('a')
    assert.deepEqual([ended, failed], [3, 2])
    assert.deepEqual([history.ended[0], history.ended[59], history.failed[0]], [2, 1, 2])
    assert.deepEqual(figures('b').ended, 0)
  })

  test('percentiles are within a factor of 1.6', () => {
    const random = (n: number): number => 0.0005 * 1.9 ** (n % 23)
    const seconds = Array.from({ length: 1000 }, (_, n) => random(n)).sort((a, b) => a - b)
    const counts = new Array(HISTOGRAM_BOUNDS.length + 1).fill(0)
    for (const one of seconds) counts[bucketOf(one)]++
    for (const part of [0.5, 0.95]) {
      const exact = seconds[Math.ceil(part * seconds.length) - 1]!
      const found = percentile(counts, seconds.length, part)
      assert.ok(found / exact < 1.6 && exact / found < 1.6, `${part}: ${found} for ${exact}`)
    }
    assert.equal(percentile(createHistogram(5e6), 1, 0.5), 10_000)
  })
})
