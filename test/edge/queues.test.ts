import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createFigureCalculator, percentile } from '../../edge/routes/queues/figures.ts'
import { readQueueShares } from '../../sql/jobs/queues.ts'
import { addTallies, HISTOGRAM_BOUNDS } from '../../sql/jobs/tallies.ts'
import { inspectDatabase } from '../../sql/server/doctor.ts'
import { bucketOf } from '../../tasks/platform/tally.ts'
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

test('shows wait and run times by span if asked', async () => {
  const { json } = await api.get(`${PATH}?window=1h&times=true`, adminToken)
  const { times } = json.queues.find((one: { queue: string }) => one.queue === 'documents')
  const span = times.runs.findIndex((counts: number[]) => counts.length > 0)
  assert.ok(span >= 58)
  const counted = times.runs[span].reduce((a: number, b: number) => a + b)
  assert.deepEqual([counted, times.runs[span].length], [12, json.bounds.length + 1])
  assert.ok(times.run[span].p50 > 1.58 && times.wait[span].p95 <= 0.631)
  assert.deepEqual([times.run[0], times.runs[0], times.waits.length], [null, [], 60])
  assert.equal((await getQueue('documents')).times, undefined)
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

describe('worker queues', () => {
  const addQueues = (...names: string[]) =>
    query('insert into worker_queue (name) select unnest($1::text[])', [names])
  const addLease = (queue: string, info = '{"language": "python"}', ends = '1 hour') =>
    query(
      `insert into worker_lease (id, name, queues, queue, info, ttl_seconds, expires_at)
       values (gen_random_uuid(), 'w', array[$1], $1, $2, 30, now() + $3::interval)`,
      [queue, info, ends],
    )

  test('are listed without jobs and workers, and count live workers but no leases of endpoints', async () => {
    await addQueues('images')
    const { queued, workers, limit } = await getQueue('images')
    assert.deepEqual([queued, workers, limit], [0, 0, null])
    await addLease('images')
    await addLease('images')
    await addLease('images', '{"push": true}')
    await addLease('images', '{}', '-1 second')
    assert.equal((await getQueue('images')).workers, 2)
  })

  test('get no share of an own worker, and their workers are none of the service', async () => {
    const [{ id }] = (await query(`insert into worker_lease (id, name, queues, expires_at)
      values (gen_random_uuid(), 'host/1', '{voice}', now() + interval '1 hour') returning id`)) as [
      { id: string },
    ]
    await query('delete from queue_control')
    await query(`insert into queue_control (queue, most_running) values ('images', 4), ('voice', 4)`)
    const [voice, ...others] = await db.any(readQueueShares(id))
    assert.deepEqual([voice, others], [{ queue: 'voice', concurrency: 4, drained: false }, []])
    await ledger.add(null, { name: 'images/resize', queue: 'images' })
    await ledger.add(null, { name: 'ai.chat', queue: 'ai' })
    await addQueues('unserved')
    await ledger.add(null, { name: 'unserved/t', queue: 'unserved' })
    const { workers, unservedQueues } = await inspectDatabase(database.url, 'millrace')
    const isUnserved = (queue: string) => unservedQueues.includes(queue)
    assert.deepEqual([workers, ['ai', 'images', 'unserved'].map(isUnserved)], [1, [true, false, false]])
    await query('delete from worker_lease where id = $1', [id])
    await query('delete from queue_control')
  })

  test('have rates of ended jobs', async () => {
    const histograms = { runs: createHistogram(2, 3), waits: createHistogram(0.5, 3) }
    const of = { queue: 'images', attempts: 3, run_seconds: 6, wait_seconds: 1.5, ...histograms }
    await db.run(
      addTallies(
        [
          { ...of, name: 'images/resize', outcome: 'done' },
          { ...of, name: 'images/crop', outcome: 'failed' },
          { ...of, name: 'images/crop', outcome: 'done' },
        ],
        {},
      ),
    )
    const { ended, failed, run, history } = await getQueue('images', '1h')
    assert.deepEqual([ended, failed], [9, 3])
    assert.ok(run.p99 > 1.58 && run.p99 <= 2.51)
    assert.equal(Math.max(...history.ended), 9)
  })

  test('can be paused, resumed and limited, until they are deleted', async () => {
    const paused = await api.post(`${PATH}/images/pause`, adminToken)
    assert.deepEqual([paused.status, paused.json.paused_by], [200, admin.id])
    assert.equal((await api.post(`${PATH}/images/resume`, adminToken)).json.paused_at, null)
    const limited = await api.call('PATCH', `${PATH}/images`, { ...adminToken, json: { limit: 2 } })
    assert.deepEqual([limited.status, limited.json.limit, (await getQueue('images')).limit], [200, 2, 2])
    await query(`delete from worker_queue where name = 'images'`)
    const gone = await api.post(`${PATH}/images/pause`, adminToken)
    assert.deepEqual([gone.status, gone.json.code], [404, 'queue.missing'])
    assert.equal(
      (await api.call('PATCH', `${PATH}/images`, { ...adminToken, json: { limit: 3 } })).status,
      404,
    )
  })

  test('beyond 500 queues, those with jobs, workers or controls are listed', async () => {
    await query(
      `insert into worker_queue (name) select 'many-' || lpad(g::text, 4, '0') from generate_series(1, 600) g`,
    )
    await addQueues('zero-jobs', 'zero-workers', 'zero-limited', 'zero-nothing')
    await ledger.add(null, { name: 'zero-jobs/t', queue: 'zero-jobs' })
    await addLease('zero-workers')
    await api.call('PATCH', `${PATH}/zero-limited`, { ...adminToken, json: { limit: 1 } })
    const { json } = await api.get(PATH, adminToken)
    const names = json.queues.map(({ queue }: { queue: string }) => queue)
    assert.equal(names.length, 500)
    for (const name of ['zero-jobs', 'zero-workers', 'zero-limited', 'voice', 'many-0001'])
      assert.ok(names.includes(name), name)
    assert.ok(!names.includes('zero-nothing'))
    await query('delete from worker_queue')
  })
})

describe('queue statistics', () => {
  test('cover only their window and queue', () => {
    const last = 1000
    const figures = createFigureCalculator(
      [
        ['a', last, 'done', 1],
        ['a', last - 59, 'failed', 2],
        ['a', last - 60, 'done', 4],
        ['a', last + 1, 'done', 8],
      ],
      [['a', createHistogram(1, 3), createHistogram(1, 3)]],
      '10m',
      last * 10_000 + 5,
    )
    const { ended, failed, run, history } = figures('a')
    assert.deepEqual([ended, failed], [3, 2])
    assert.ok(run!.p50 > 0.631 && run!.p50 <= 1)
    assert.deepEqual([history.ended[0], history.ended[59], history.failed[0]], [2, 1, 2])
    assert.deepEqual([figures('b').ended, figures('b').run], [0, null])
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
