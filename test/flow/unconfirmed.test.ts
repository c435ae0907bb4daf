import assert from 'node:assert/strict'
import { test } from 'node:test'
import { migrate } from '../../sql/server/migrate.ts'
import { Cluster } from '../cluster.ts'
import { startEdge } from '../edge/harness.ts'
import { Client } from '../service.ts'
import { stopAfterFile } from '../services.ts'
import { until } from '../until.ts'

/**
 * Some writes reach only the primary, because a terminated connection or a crash ended their wait for the synchronous
 * standby. Other clients already see such a write, but a retry may acknowledge it only once the standby has it.
 */

const cluster = await Cluster.start()
stopAfterFile(() => cluster.stop())
const { primary, standby } = cluster
await migrate(primary.url)
await cluster.attachStandby()
const api = await startEdge(primary.url, { env: { DATABASE_URL: primary.url } })
// On this edge, the write timeout ends the wait for the standby.
const hastyEdge = await startEdge(primary.url, {
  env: { DATABASE_URL: primary.url, WRITE_TIMEOUT_SECONDS: '1' },
})
const { token } = await api.register('admin@example.com')

/** Returns the processes whose commits wait for the standby, limited to statements that contain `text`. */
const listWaitingCommits = async (text = ''): Promise<readonly number[]> =>
  (
    await primary.query(
      `select pid from pg_stat_activity where wait_event = 'SyncRep' and query like '%' || $1 || '%'`,
      [text],
    )
  ).map(({ pid }) => Number(pid))

for (const [path, json, stored] of [
  ['/api/v1/blog/tags', { name: 'Kept' }, `select from blog_tag where name = 'Kept'`],
  [
    '/api/v1/tasks/enqueue',
    { task_name: 'io_simulation_task', queue_type: 'load_test' },
    `select from job where name = 'load_test.io_simulation_task'`,
  ],
] as const)
  test(`POST ${path}: a retry waits until the standby has the write`, async () => {
    const post = () => api.post(path, { token, json, headers: { 'idempotency-key': 'once' } })
    await standby.kill('SIGINT')
    const first = post()
    const [pid] = await until('the commit waits for the standby', async () => {
      const pids = await listWaitingCommits()
      return pids.length > 0 && pids
    })
    await primary.query('select pg_terminate_backend($1)', [pid])
    assert.equal((await first).status, 503)
    await until('the primary shows the write', async () => (await primary.query(stored)).length === 1)
    const again = post().then((answer) => ({ answer }))
    const early = await Promise.race([
      again,
      until('the retry waits as well', async () => (await listWaitingCommits()).length > 0),
    ])
    assert.equal(early, true, JSON.stringify(early))
    await standby.start()
    const { answer } = await again
    assert.ok(answer.status < 300, answer.text)
    assert.equal((await standby.query(stored)).length, 1)
    assert.equal((await primary.query(stored)).length, 1)
  })

test('a commit whose wait exceeds the write timeout is not acknowledged', async () => {
  await standby.kill('SIGINT')
  const json = { name: 'Late' }
  const post = () =>
    hastyEdge.post('/api/v1/blog/tags', { token, json, headers: { 'idempotency-key': 'late' } })
  assert.equal((await post()).status, 503)
  // On a busy machine the timeout can also end other statements, which the edge answers with 503.
  const again = await until('the primary shows the write', async () => {
    const { status } = await post()
    return status !== 503 && status
  })
  assert.equal(again, 409)
  await standby.start()
  const answer = await until('a retry is acknowledged', async () => {
    const given = await post()
    return given.status !== 409 && given.status !== 503 && given
  })
  assert.equal(answer.status, 201, answer.text)
  assert.equal((await standby.query(`select from blog_tag where name = 'Late'`)).length, 1)
})

/** Adds a job that ends only on the primary, because a crash cuts the wait for the standby. */
async function endJobInCrash(): Promise<string> {
  const added = await api.post('/api/v1/tasks/enqueue', {
    token,
    json: { task_name: 'io_simulation_task', queue_type: 'load_test', delay_seconds: 600 },
  })
  const id = added.json.task_id
  await standby.kill('SIGINT')
  const end = primary.query('select job_cancel(array[$1::uuid])', [id]).catch(() => null)
  const [pid] = await until('the commit waits for the standby', async () => {
    const pids = await listWaitingCommits('job_cancel')
    return pids.length > 0 && pids
  })
  process.kill(pid!, 'SIGKILL')
  await end
  await until('the primary shows the write', async () => {
    const [job] = await primary.query('select status from job where id = $1', [id]).catch(() => [])
    return job?.status === 'cancelled'
  })
  return id
}

test('a stream reports an end only once the standby has it', async () => {
  const id = await endJobInCrash()
  const client = Object.assign(new Client(api.port), { token })
  await until('the edge is back', async () => (await api.get(`/api/v1/jobs/${id}`, { token })).status === 200)
  const opening = client.stream(`/api/v1/jobs/${id}/events`)
  const early = await Promise.race([
    opening
      .then((opened) => opened.until('a frame has arrived', (frames) => frames.length > 0))
      .then(() => 'a frame'),
    until(
      'the read waits for the standby',
      async () => (await listWaitingCommits('millrace.confirmed')).length > 0,
    ),
  ])
  assert.equal(early, true, JSON.stringify(early))
  await standby.start()
  const opened = await opening
  await opened.waitForEnd(20_000)
  assert.equal(opened.frames.at(-1)?.data.status, 'cancelled')
  const [job] = await standby.query('select status from job where id = $1', [id])
  assert.equal(job?.status, 'cancelled')
})
