import assert from 'node:assert/strict'
import { test } from 'node:test'
import { notifyJobChanges } from '../../sql/connections/notify.ts'
import { createDatabase } from '../../sql/db.ts'
import { migrate } from '../../sql/server/migrate.ts'
import { Cluster } from '../cluster.ts'
import { startEdge } from '../edge/harness.ts'
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
const db = createDatabase({ url: primary.url, applicationName: 'notify', size: 1, validateRows: true })
stopAfterFile(() => db.close())
const { token } = await api.register('admin@example.com')

/** Returns the processes of idempotent requests whose commits wait for the standby. Notifications can wait for it as well. */
const listWaitingCommits = async (): Promise<readonly number[]> => {
  const rows = await primary.query(
    `select distinct pid from pg_stat_activity join pg_locks lock using (pid)
     where wait_event = 'SyncRep' and lock.relation = 'idempotency_key'::regclass`,
  )
  return rows.map(({ pid }) => Number(pid))
}

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

test('a notification does not wait for the standby, even if its reads write to the WAL', async () => {
  const jobs = await primary.query('update job set id = id returning id::text')
  // The first hint bit of a page after a checkpoint writes the page to the WAL. The new row versions are unread.
  await primary.query('checkpoint')
  await standby.kill('SIGINT')
  assert.equal(await db.run(notifyJobChanges(jobs.map(({ id }) => String(id)))), 1)
  await standby.start()
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
