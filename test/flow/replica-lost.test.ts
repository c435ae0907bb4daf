import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Cluster } from '../cluster.ts'
import { startEdge } from '../edge/harness.ts'
import { stopAfterFile } from '../services.ts'
import { until } from '../until.ts'
import { countReads, createReplicaWorld } from './replicas.ts'

/** A standby conflicts, lags, falls silent, dies or is promoted. No read fails. */

const { cluster, edges, link, logged, pause, resume, waitForState } = await createReplicaWorld()
const [edge] = edges
const { token } = await edge.register('writer@example.com')
await waitForState('used')

// A quiet machine recovers within 3 s.
const RECOVERY_TIMEOUT_MS = 8_000
const readDepth = async (at = edge): Promise<number> => {
  const answer = await at.get('/api/v1/tasks', { token })
  assert.equal(answer.status, 200, answer.text)
  return answer.json.queues.find((one: { queue_type: string }) => one.queue_type === 'load_test').depth
}
const enqueueTask = async () => {
  const task = { task_name: 'io_simulation_task', queue_type: 'load_test', args: { duration_ms: 1 } }
  const answer = await edge.post('/api/v1/tasks/enqueue', { token, json: task })
  assert.equal(answer.status, 202, answer.text)
}
const readReadiness = async () => {
  const { status, json } = await edge.get('/ready')
  return [status, json.status, json.replica.state]
}
const waitUntilUsed = async () => {
  await waitForState('used')
  await until('the standby answers', async () => (await countReads(edge, () => readDepth())).replica === 1)
}
await enqueueTask()
await waitUntilUsed()
await until('the standby counts the task', async () => (await readDepth()) === 1)

test("repeats a read on the primary if it conflicts with the standby's replay", async () => {
  await cluster.standby.query('alter system set max_standby_streaming_delay = 0')
  await cluster.standby.query('select pg_reload_conf()')
  const held = {
    name: 'held',
    text: `select pg_is_in_recovery()::text from job, pg_sleep(case when pg_is_in_recovery() then 60 else 0 end) limit 1`,
  }
  const { replica } = edge.serving.edge
  const reading = countReads(edge, () => replica!.readsFor(1, 'statistics', () => {}).text(held, []))
  await until('the standby runs the read', async () => {
    const rows = await cluster.standby.query(
      `select from pg_stat_activity where state = 'active' and query like '%pg_sleep(case%' and pid <> pg_backend_pid()`,
    )
    return rows.length > 0
  })
  await cluster.primary.query('begin; lock table job in access exclusive mode; commit')
  assert.deepEqual(await reading, { answer: 'false', replica: 0, primary: 1 })
})

test('a silent standby delays reads only briefly, and is used again once it answers', async () => {
  link.silence()
  const startedAt = performance.now()
  const all = await countReads(edge, () => Promise.all(Array.from({ length: 10 }, () => readDepth())))
  assert.ok(performance.now() - startedAt < RECOVERY_TIMEOUT_MS, `${performance.now() - startedAt} ms`)
  assert.deepEqual([all.answer[0], all.primary], [1, 10])
  await waitForState('away')
  assert.deepEqual(await readReadiness(), [200, 'ready', 'away'])
  link.restore()
  await waitUntilUsed()
})

test('a standby that lags by more than 10 s is not used, and the log says so once', async () => {
  await pause()
  await enqueueTask()
  logged.length = 0
  await waitForState('behind')
  const { json } = await edge.get('/ready')
  assert.ok(json.replica.lag_seconds > 10)
  const { text } = await edge.get('/metrics')
  assert.match(text, /^replica_used 0$/m)
  assert.match(text, /^replica_lag_seconds [1-9]\d+$/m)
  assert.match(text, /^lagging_reads_total\{server="replica"\} [1-9]\d*$/m)
  assert.match(text, /^lagging_reads_total\{server="primary"\} [1-9]\d*$/m)
  const { answer, primary } = await countReads(edge, () => readDepth())
  assert.deepEqual([answer, primary], [2, 1])
  await resume()
  await waitUntilUsed()
  assert.deepEqual(logged, [
    'Not using the replica: it lags by more than 10 s',
    'Using the replica for reads that may lag',
  ])
})

test('killing the standby fails no read', async () => {
  let ended = false
  let count = 0
  const reading = Array.from({ length: 4 }, async () => {
    while (!ended) {
      assert.equal(await readDepth(), 2)
      count++
    }
  })
  await until('the clients have read', () => count > 50)
  await cluster.standby.kill('SIGKILL')
  await waitForState('away')
  const seen = count
  await until('the clients still read', () => count > seen + 50)
  ended = true
  await Promise.all(reading)
  await cluster.standby.start()
  await waitUntilUsed()
})

test('neither a promoted standby nor one of another cluster is used', async () => {
  const [old, promoted] = [cluster.primary, cluster.standby]
  await cluster.promote()
  await waitForState('away')
  await promoted.query('delete from job_count')
  for (let i = 0; i < 10; i++) assert.equal(await readDepth(), 2)
  assert.deepEqual(await readReadiness(), [200, 'ready', 'away'])

  // A restarted old primary has only its own timeline. It replays nothing, so it falls behind.
  await old.kill('SIGQUIT')
  writeFileSync(join(old.data, 'standby.signal'), '')
  await old.start({})
  const env = { AUTH_LEVEL: 'basic', DATABASE_URL: promoted.url, DATABASE_REPLICA_URL: old.url }
  const moved = await startEdge(promoted.url, { env })
  await promoted.query(`update account set full_name = 'moved'`)
  await until(
    'the replica is behind',
    async () => (await moved.get('/ready')).json.replica.state === 'behind',
    30_000,
  )
  const other = await Cluster.start()
  stopAfterFile(() => other.stop())
  await other.attachStandby(false)
  const foreign = { ...env, DATABASE_REPLICA_URL: other.standby.url }
  const strange = await startEdge(promoted.url, { env: foreign })
  await until(
    'the replica is rejected as foreign',
    async () => (await strange.get('/ready')).json.replica.state === 'foreign',
    30_000,
  )
})
