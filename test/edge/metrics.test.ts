import assert from 'node:assert/strict'
import { test } from 'node:test'
import pino from 'pino'
import { createMatcher } from '../../edge/pipeline/request/match.ts'
import { areas } from '../../edge/routes/index.ts'
import { addTallies, HISTOGRAM_BOUNDS } from '../../sql/jobs/tallies.ts'
import { bucketOf } from '../../tasks/platform/tally.ts'
import { findFreePort } from '../free-port.ts'
import { until } from '../until.ts'
import { type Api, startEdge, startEdgeAndDatabase } from './harness.ts'

/** Tests access to the metrics, their size, and how often the edge computes them. */

const { api, url, db, query } = await startEdgeAndDatabase()
const getMetrics = () => api.get('/metrics')
const TOKEN = 'Metrics-token.0123456789'
const PRODUCTION = { NODE_ENV: 'production', DATABASE_URL: 'postgresql://unused' }
const lines: string[] = []
const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) })

const metricsPort = await findFreePort()
const closedEdge = await startEdge(url, { env: PRODUCTION, log })
const guardedEdge = await startEdge(url, { env: { ...PRODUCTION, METRICS_TOKEN: TOKEN } })
const separatePortEdge = await startEdge(url, { env: { ...PRODUCTION, METRICS_PORT: String(metricsPort) } })

const requestStatus = async (edge: Api, authorization?: string): Promise<number> =>
  (await edge.get('/metrics', { headers: authorization === undefined ? {} : { authorization } })).status

test('in production without a token or port there are no metrics, and the startup log says so', async () => {
  assert.deepEqual(
    [await requestStatus(closedEdge), await requestStatus(closedEdge, `Bearer ${TOKEN}`)],
    [404, 404],
  )
  assert.equal(lines.filter((line) => line.includes('set METRICS_TOKEN or METRICS_PORT')).length, 1)
})

test('with a token only its bearer reads the metrics', async () => {
  assert.deepEqual(
    [
      await requestStatus(guardedEdge, `Bearer ${TOKEN}`),
      await requestStatus(guardedEdge, `bearer ${TOKEN}`),
    ],
    [200, 200],
  )
  for (const wrong of [undefined, `Bearer ${TOKEN}x`, `Bearer ${TOKEN.slice(1)}`, `Basic ${TOKEN}`, TOKEN])
    assert.equal(await requestStatus(guardedEdge, wrong), 401, wrong)
})

test('a metrics port serves only the metrics, and the main port none', async () => {
  assert.equal(await requestStatus(separatePortEdge), 404)
  const at = `http://127.0.0.1:${metricsPort}`
  const answer = await fetch(`${at}/metrics`)
  assert.equal(answer.status, 200)
  assert.match(await answer.text(), /^http_requests_total\{method="GET",route="\/metrics",status="4xx"\} 1$/m)
  assert.equal((await fetch(`${at}/metrics`, { method: 'HEAD' })).status, 200)
  for (const path of ['/health', '/', '/metrics/x']) assert.equal((await fetch(at + path)).status, 404, path)
  assert.equal((await fetch(`${at}/metrics`, { method: 'POST' })).status, 404)
})

interface MetricFamily {
  readonly type: string
  readonly samples: readonly string[]
}

/** Parses the metric families of a text, keyed by name. */
function parseFamilies(text: string): ReadonlyMap<string, MetricFamily> {
  const families = new Map<string, { type: string; samples: string[] }>()
  let helped = ''
  for (const line of text.split('\n').filter(Boolean)) {
    const [, kind, name, rest] = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line) ?? []
    if (kind === 'HELP') helped = name!
    else if (kind === 'TYPE') {
      assert.ok(name === helped && !families.has(name!), `${line} once, after its help`)
      families.set(name!, { type: rest!, samples: [] })
    } else {
      const [, sample] = /^([a-z0-9_]+)(?:\{[^}]*\})? (?:[-+]?\d\S*|NaN)$/i.exec(line) ?? []
      assert.ok(sample?.startsWith(helped), line)
      families.get(helped)!.samples.push(line)
    }
  }
  return families
}

test('names and types follow the rules of promtool', async () => {
  await api.get('/nowhere')
  for (const [name, { type, samples }] of parseFamilies((await getMetrics()).text)) {
    assert.equal(name.endsWith('_total'), type === 'counter', `${name} is a ${type}`)
    assert.doesNotMatch(name, /_(count|sum|bucket|ms|milliseconds|kilobytes)$/)
    assert.ok(!/counter|gauge|histogram|summary/.test(name), name)
    if (type === 'histogram')
      assert.ok(samples.some((line) => line.includes('le="+Inf"')) || samples.length === 0)
  }
})

test('worker metrics cover every task by outcome', async () => {
  const times = (at: number) =>
    Array.from({ length: HISTOGRAM_BOUNDS.length + 1 }, (_, n) => (n === at ? 3 : 0))
  const of = { queue: 'ai', name: 'ai.chat', attempts: 3, run_seconds: 1.5, wait_seconds: 6 }
  await db.run(
    addTallies(
      [
        { ...of, outcome: 'done', runs: times(bucketOf(0.5)), waits: times(bucketOf(2)) },
        { ...of, outcome: 'failed', runs: times(bucketOf(0.5)), waits: times(bucketOf(2)) },
        { ...of, outcome: 'retry', runs: times(bucketOf(5e6)), waits: times(bucketOf(0)) },
      ],
      { children_lost: 4 },
    ),
  )
  await query(`insert into worker_lease (id, name, queues, threads, busy, memory_bytes, expires_at)
    values (gen_random_uuid(), 'host/1', '{ai}', 8, 5, 1000000, now() + interval '1 hour')`)
  const text = await until('the metrics are in the text', async () => {
    const { text } = await getMetrics()
    return text.includes('jobs_ended_total{') && text
  })
  parseFamilies(text)
  for (const line of [
    'jobs_ended_total{queue="ai",task="ai.chat",outcome="done"} 3',
    'jobs_ended_total{queue="ai",task="ai.chat",outcome="failed"} 3',
    'job_attempts_repeated_total{queue="ai",task="ai.chat",outcome="retry"} 3',
    'job_run_seconds_bucket{queue="ai",task="ai.chat",le="0.398"} 0',
    'job_run_seconds_bucket{queue="ai",task="ai.chat",le="1"} 6',
    'job_run_seconds_bucket{queue="ai",task="ai.chat",le="10000"} 6',
    'job_run_seconds_bucket{queue="ai",task="ai.chat",le="+Inf"} 9',
    'job_run_seconds_sum{queue="ai",task="ai.chat"} 4.5',
    'job_wait_seconds_bucket{queue="ai",task="ai.chat",le="0.01"} 3',
    'job_wait_seconds_count{queue="ai",task="ai.chat"} 9',
    'worker_children_lost_total 4',
    'worker_leases_lost_total 0',
    'worker_threads{worker="host/1"} 8',
    'worker_threads_busy{worker="host/1"} 5',
    'worker_memory_bytes{worker="host/1"} 1000000',
    'worker_jobs_running{worker="host/1"} 0',
  ])
    assert.ok(
      text.split('\n').includes(line),
      `${line}\n${text
        .split('\n')
        .filter((one) => one.startsWith(line.split('{')[0]!))
        .join('\n')}`,
    )
})

test('own workers have gauges by worker, and HTTP workers one by queue', async () => {
  await query(`insert into worker_lease (id, name, queues, queue, info, ttl_seconds, expires_at)
    select gen_random_uuid(), 'http/' || g, '{images}', 'images', info, 30, now() + ends
    from generate_series(1, 3) g, (values ('{}'::jsonb, interval '1 hour'), ('{"push": true}', interval '1 hour'), ('{}', interval '-1 s')) v(info, ends)`)
  const text = await until('the workers are in the text', async () => {
    const { text } = await getMetrics()
    return text.includes('worker_http_leases{') && text
  })
  assert.match(text, /^worker_http_leases\{queue="images"\} 3$/m)
  assert.doesNotMatch(text, /worker="http/)
})

test('beyond 200 tasks and 200 worker queues, the rest adds up to one series', async (t) => {
  t.after(() =>
    Promise.all([
      query(`delete from job_tally where name like 'queue-%'`),
      query(`delete from job_count where queue like 'queue-%'`),
      query(`delete from worker_lease where queue like 'queue-%'`),
    ]),
  )
  const times = Array.from({ length: HISTOGRAM_BOUNDS.length + 1 }, (_, n) => (n === bucketOf(0.5) ? 1 : 0))
  const tallies = Array.from({ length: 250 }, (_, n) => ({
    queue: `queue-${n}`,
    name: `queue-${n}/task`,
    outcome: 'done' as const,
    attempts: n + 1,
    run_seconds: 1,
    wait_seconds: 2,
    runs: times,
    waits: times,
  }))
  await db.run(addTallies(tallies, {}))
  await query(
    `insert into job_count (queue, queued, running) select 'queue-' || g, g, 1 from generate_series(0, 249) g`,
  )
  await query(`insert into worker_lease (id, name, queues, queue, info, ttl_seconds, expires_at)
    select gen_random_uuid(), 'w', array['queue-' || g], 'queue-' || g, '{}', 30, now() + interval '1 hour' from generate_series(0, 249) g`)
  const text = await until('the tasks are in the text', async () => {
    const { text } = await getMetrics()
    return text.includes('queue="queue-249"') && text
  })
  const lines = text.split('\n')
  // 50 tasks with 1 to 50 attempts, and 50 queues with 0 to 49 queued jobs. `images` has more workers than each.
  for (const line of [
    'jobs_ended_total{queue="queue-249",task="queue-249/task",outcome="done"} 250',
    'jobs_ended_total{queue="queue-50",task="queue-50/task",outcome="done"} 51',
    'jobs_ended_total{queue="other",task="other",outcome="done"} 1275',
    'job_run_seconds_bucket{queue="other",task="other",le="0.398"} 0',
    'job_run_seconds_bucket{queue="other",task="other",le="1"} 50',
    'job_wait_seconds_sum{queue="other",task="other"} 100',
    'job_wait_seconds_count{queue="other",task="other"} 50',
    'jobs{queue="queue-50",status="queued"} 50',
    'jobs{queue="other",status="queued"} 1225',
    'jobs{queue="other",status="running"} 50',
    'worker_http_leases{queue="images"} 3',
    'worker_http_leases{queue="other"} 51',
  ])
    assert.ok(lines.includes(line), `${line}\n${lines.filter((one) => one.includes('"other"')).join('\n')}`)
  const count = (start: string) => lines.filter((line) => line.startsWith(start)).length
  assert.equal(count('jobs_ended_total{queue="queue-'), 200)
  assert.equal(count('worker_http_leases{'), 201)
  assert.equal(count('jobs{queue="queue-'), 3 * 200)
  assert.ok(text.length < 1_000_000, `${text.length} bytes`)
})

test('refusals are counted by code', async () => {
  await api.get('/api/v1/jobs/nonsense', { headers: { authorization: 'Bearer nonsense' } })
  await until('the refusal is counted', async () =>
    /^http_refusals_total\{code="[a-z._]+"\} \d/m.test((await getMetrics()).text),
  )
})

test('reads within a second get the same bytes, compressed or not', async () => {
  const { metrics } = api.serving.edge
  // The edge caches a text for a second, which may end between two reads. Retry until both reads get the same text.
  await until('two texts are equal', async () => {
    const one = await metrics.render()
    return one === (await metrics.render())
  })
  const plain = await api.get('/metrics')
  const small = await api.get('/metrics', { headers: { 'accept-encoding': 'br' } })
  assert.deepEqual([plain.headers['content-encoding'], small.headers['content-encoding']], [undefined, 'br'])
  assert.ok(small.bytes.length < plain.bytes.length / 2)
})

test('the text stays under 400 KB after any requests', async () => {
  const { metrics } = guardedEdge.serving.edge
  const { entries } = createMatcher(areas)
  assert.ok(entries.length > 140)
  for (let round = 0; round < 1000; round++) {
    for (const name of ['GET', 'HEAD', 'OPTIONS', 'BREW', `M${round}`])
      metrics.recordResponse(null, name, 404, 0.02)
  }
  for (const entry of entries)
    for (const method of ['GET', 'HEAD', 'OPTIONS', 'POST'])
      for (const status of [0, 200, 201, 204, 302, 304, 400, 401, 404, 422, 429, 500, 503])
        metrics.recordResponse(entry, method, status, 123.456789)
  const authorization = `Bearer ${TOKEN}`
  for (;;) {
    const { bytes, text } = await guardedEdge.get('/metrics', { headers: { authorization } })
    // Skip a text that was cached before these calls and lacks the new series.
    if (!text.includes('method="other"')) continue
    assert.ok(bytes.length < 400_000, `${bytes.length} bytes`)
    break
  }
})
