import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { startEdge } from '../edge/harness.ts'
import { until } from '../until.ts'
import { countReads, createReplicaWorld } from './replicas.ts'

/** A standby conflicts, lags, falls silent, dies or is promoted. Lists stay correct, and none fails. */

const { cluster, edges, link, logged, pause, resume, waitForState } = await createReplicaWorld()
const [edge] = edges
const { token } = await edge.register('writer@example.com')
await waitForState('used')

const TAGS_PATH = '/api/v1/blog/tags'
// A quiet machine recovers within 3 s.
const RECOVERY_TIMEOUT_MS = 8_000
const listNames = async (at = edge): Promise<string[]> => {
  const answer = await at.get(TAGS_PATH)
  assert.equal(answer.status, 200, answer.text)
  return answer.json.tags.map(({ name }: { name: string }) => name).sort()
}
const createTag = async (name: string) => {
  const answer = await edge.post(TAGS_PATH, { json: { name }, token })
  assert.equal(answer.status, 201, answer.text)
}
const readReadiness = async () => {
  const { status, json } = await edge.get('/ready')
  return [status, json.status, json.replica.state]
}
const waitUntilUsed = async () => {
  await waitForState('used')
  await until(
    'the standby answers a list',
    async () => (await countReads(edge, () => listNames())).replica === 1,
  )
}
await createTag('kept')
await waitUntilUsed()

test("repeats a read on the primary if it conflicts with the standby's replay", async () => {
  await cluster.standby.query('alter system set max_standby_streaming_delay = 0')
  await cluster.standby.query('select pg_reload_conf()')
  const held = {
    name: 'held',
    text: `select pg_is_in_recovery()::text from blog_tag, pg_sleep(case when pg_is_in_recovery() then 60 else 0 end) limit 1`,
  }
  const { reads } = edge.serving.edge.replica!
  const reading = countReads(edge, () => reads.readsFor(1, 'statistics', 0).text(held, []))
  await until('the standby runs the read', async () => {
    const rows = await cluster.standby.query(
      `select from pg_stat_activity where state = 'active' and query like '%pg_sleep(case%' and pid <> pg_backend_pid()`,
    )
    return rows.length > 0
  })
  await cluster.primary.query('begin; lock table blog_tag in access exclusive mode; commit')
  assert.deepEqual(await reading, { answer: 'false', replica: 0, primary: 1 })
})

test('a silent standby delays reads only briefly, and is used again once it answers', async () => {
  link.silence()
  const startedAt = performance.now()
  const all = await countReads(edge, () => Promise.all(Array.from({ length: 10 }, () => listNames())))
  assert.ok(performance.now() - startedAt < RECOVERY_TIMEOUT_MS, `${performance.now() - startedAt} ms`)
  assert.deepEqual([all.answer[0], all.primary], [['kept'], 10])
  await waitForState('away')
  assert.deepEqual(await readReadiness(), [200, 'ready', 'away'])
  link.restore()
  await waitUntilUsed()
})

test('a standby that lags by more than 10 s is not used, and the log says so once', async () => {
  await pause()
  await createTag('late')
  logged.length = 0
  await waitForState('behind')
  const { json } = await edge.get('/ready')
  assert.ok(json.replica.behind_bytes > 0)
  const { text } = await edge.get('/metrics')
  assert.match(text, /^replica_used 0$/m)
  assert.match(text, /^replica_behind_bytes [1-9]\d*$/m)
  assert.match(text, /^slow_reads_total\{server="replica"\} [1-9]\d*$/m)
  assert.match(text, /^slow_reads_total\{server="primary"\} [1-9]\d*$/m)
  const { answer, primary } = await countReads(edge, () => listNames())
  assert.deepEqual([answer, primary], [['kept', 'late'], 1])
  await resume()
  await waitUntilUsed()
  assert.deepEqual(logged, [
    'Not using the replica: it lags by more than 10 s',
    'Using the replica for lists, searches and statistics',
  ])
})

test('killing the standby fails no read', async () => {
  let ended = false
  let count = 0
  const reading = Array.from({ length: 4 }, async () => {
    while (!ended) {
      assert.deepEqual(await listNames(), ['kept', 'late'])
      count++
    }
  })
  await until('the clients have read lists', () => count > 50)
  await cluster.standby.kill('SIGKILL')
  await waitForState('away')
  const seen = count
  await until('the clients still read lists', () => count > seen + 50)
  ended = true
  await Promise.all(reading)
  await cluster.standby.start()
  await waitUntilUsed()
})

test('a promoted standby is not used, even after writes to it', async () => {
  const [old, promoted] = [cluster.primary, cluster.standby]
  await cluster.promote()
  const { answer, replica } = await countReads(edge, () => listNames())
  assert.deepEqual([answer, replica], [['kept', 'late'], 0], 'immediately')
  await promoted.query(`insert into blog_tag (name, slug) values ('foreign', 'foreign')`)
  await waitForState('away')
  for (let i = 0; i < 10; i++) assert.deepEqual(await listNames(), ['kept', 'late'])
  assert.deepEqual(await readReadiness(), [200, 'ready', 'away'])

  // A restarted old primary has only its own timeline and does not replicate the new primary, so an edge must not read
  // from it.
  await old.kill('SIGQUIT')
  writeFileSync(join(old.data, 'standby.signal'), '')
  await old.start({})
  const env = { AUTH_LEVEL: 'basic', DATABASE_URL: promoted.url, DATABASE_REPLICA_URL: old.url }
  const moved = await startEdge(promoted.url, { env })
  await until(
    'the replica is rejected as foreign',
    async () => (await moved.get('/ready')).json.replica.state === 'foreign',
    30_000,
  )
  assert.deepEqual(await listNames(moved), ['foreign', 'kept', 'late'])
})
