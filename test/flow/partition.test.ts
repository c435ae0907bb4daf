import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connect } from '../../sql/connections/driver.ts'
import { createTestDatabase } from '../database.ts'
import { until } from '../until.ts'
import * as crash from './crash.ts'
import { openLink } from './link.ts'
import { startReader } from './reader.ts'

const PAGES = 100

const { url, query } = await createTestDatabase()
await crash.recordWrites(query, 20)
const client = await startReader(url)
const links = await Promise.all([openLink(url), openLink(url)])
// A long lease does not expire on a busy machine.
const lease = { LEASE_SECONDS: '2' }
const workers = await Promise.all(links.map((link, n) => crash.startWorker(link.url, `worker${n}`, lease)))
/** The worker and link that the second test leaves running. */
let remaining = { worker: workers[0]!, link: links[0]! }

test('workers that lost the database together do not declare each other dead', async () => {
  const id = await crash.uploadText(client, PAGES, 'cut off together')
  const jobId = await crash.extract(client, id)
  const stream = await client.stream(`/api/v1/jobs/${jobId}/events`)
  await crash.waitForPages(query, jobId, 5)
  for (const link of links) link.cut()
  await until('every lease has expired', async () => {
    const rows = await query("select from worker_lease where expires_at > now() - interval '0.5 s'")
    return rows.length === 0
  })
  for (const link of links) link.restore()
  const frames = await crash.readWholeStream(stream)
  assert.deepEqual(crash.assertComplete(frames).result, { read: PAGES, unread: 0, skipped: 0 })
  await crash.assertPagesOnce(query, jobId, PAGES)
  const { attempt, tries } = await crash.readJobRow(query, jobId)
  // All links run in this process, so a delay of this process is another outage.
  assert.ok(attempt >= 2, `${attempt}`)
  assert.equal(tries, 1, 'an outage is no failure of the job')
  const judged = workers.flatMap(({ log }) => log).filter((line) => /Rescued jobs|lease is lost/.test(line))
  assert.deepEqual(judged, [])
})

test('a worker that lost the database alone is declared dead, and recovers', async () => {
  const jobId = await crash.extract(client, await crash.uploadText(client, PAGES, 'cut off alone'))
  await crash.waitForPages(query, jobId, 5)
  const before = workers.map(({ log }) => log.length)
  const [cutOff, other] = await crash.findHolder(query, jobId, workers)
  const link = links[workers.indexOf(cutOff)]!
  link.cut()
  await crash.waitForAttemptStart(query, jobId, 2)
  link.restore()
  assert.equal((await crash.waitForJob(query, jobId)).status, 'done')
  await crash.assertPagesOnce(query, jobId, PAGES)
  const otherLog = other.log.slice(before[workers.indexOf(other)])
  assert.ok(!otherLog.some((line) => line.includes('lease is lost')))
  await other.kill()
  remaining = { worker: cutOff, link }
  const last = await crash.extract(client, await crash.uploadText(client, 2, 'for the one that came back'))
  assert.equal((await crash.waitForJob(query, last)).status, 'done')
})

test('a worker whose connections go silent opens new ones and repeats no work', async () => {
  const { worker, link } = remaining
  const jobId = await crash.extract(client, await crash.uploadText(client, PAGES, 'silenced'))
  await crash.waitForPages(query, jobId, 3)
  const before = worker.log.length
  link.silence()
  const hasLogged = (text: string) => () => worker.log.slice(before).some((line) => line.includes(text))
  await until('the worker has noticed', hasLogged('Waiting for the database: it does not answer'))
  link.restore()
  await until('the worker is back', hasLogged('The database answers'))
  assert.equal((await crash.waitForJob(query, jobId)).status, 'done')
  await crash.assertPagesOnce(query, jobId, PAGES)
  assert.equal(worker.process.exitCode, null)
})

test("a worker waits for another client's lock longer than its lease, and continues", async () => {
  const { worker } = remaining
  const jobId = await crash.extract(client, await crash.uploadText(client, PAGES, 'locked out'))
  await crash.waitForPages(query, jobId, 3)
  const stranger = await connect({ url, applicationName: 'stranger' })
  await stranger.query('begin; lock table worker_lease, job in access exclusive mode')
  // Longer than five leases of 2 s: the worker must not give up.
  await stranger.query(`select pg_sleep(12)`)
  await stranger.query('commit')
  await stranger.end()
  assert.equal((await crash.waitForJob(query, jobId)).status, 'done')
  await crash.assertPagesOnce(query, jobId, PAGES)
  assert.equal(worker.process.exitCode, null)
})
