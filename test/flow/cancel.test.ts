import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createTestDatabase } from '../database.ts'
import { buildScanPdf } from '../pdfs.ts'
import { type Child, launchProcess, startProcess } from '../service.ts'
import { until } from '../until.ts'
import * as crash from './crash.ts'
import { createClient, startReader } from './reader.ts'

const { url, query } = await createTestDatabase()
// At 12 ms a page, a document outlasts each test's actions, and 32 pages fit into the grace period of a stopping
// worker.
await crash.recordWrites(query, 12)
const PAGES = 400
/** The first test that needs this worker starts it. */
let worker: Child | undefined
after(() => worker?.kill())
const client = await startReader(url)

async function cancel(jobId: string): Promise<{ status: string }> {
  const response = await client.fetch(`/api/v1/jobs/${jobId}`, { method: 'DELETE' })
  assert.equal(response.status, 202)
  return (await response.json()) as { status: string }
}

// No worker is running yet.
test('cancels a waiting job immediately, and the request that waits for it', async () => {
  const id = await crash.uploadText(client, 3, 'never read')
  const waiting = client.post(`/api/v1/documents/${id}/extract`)
  const jobId = await until(
    'the job exists',
    async () => (await query(`select id from job where name = 'documents.extract'`))[0]?.id as string,
  )
  const stream = await client.stream(`/api/v1/jobs/${jobId}/events`)
  await stream.until('the stream shows the initial state', (frames) => frames.length === 1)
  assert.equal((await cancel(jobId)).status, 'cancelled')
  const frames = await stream.waitForEnd()
  assert.deepEqual(
    frames.map(({ data }) => data.status),
    ['queued', 'cancelled'],
  )
  crash.assertComplete(frames)
  const answer = await waiting
  assert.deepEqual(
    [answer.status, await answer.json()],
    [409, { detail: 'The job was cancelled', code: 'job.cancelled' }],
  )
  assert.equal((await cancel(jobId)).status, 'cancelled')
  assert.equal((await crash.readJobRow(query, jobId)).attempt, 0)
})

test('stops a running job but not its worker, and the next job of the document waits for the stop', async (t) => {
  worker = await launchProcess('worker', url, { WORKER_QUEUES: 'accounts,documents', ...crash.SHORT_LEASE })
  const id = await crash.uploadText(client, PAGES, 'too long')
  const jobId = await crash.extract(client, id)
  const stream = await client.stream(`/api/v1/jobs/${jobId}/events`)
  const waiting = client.post(`/api/v1/documents/${id}/extract`)
  await crash.waitForPages(query, jobId, 5)
  const from = await crash.readClock(query)
  assert.equal((await cancel(jobId)).status, 'running')
  const next = await crash.extract(client, id)
  assert.notEqual(next, jobId)

  const frames = await stream.waitForEnd()
  t.diagnostic(`cancelled after ${Math.round((await crash.readClock(query)) - from)} ms`)
  assert.equal(crash.assertComplete(frames).status, 'cancelled')
  await crash.assertGapless(query, jobId, frames)
  assert.equal((await waiting).status, 409)
  // DELETE does not change a job that has ended.
  const before = await query('select * from job where id = $1', [jobId])
  assert.equal((await cancel(jobId)).status, 'cancelled')
  assert.deepEqual(await query('select * from job where id = $1', [jobId]), before)

  await crash.waitForPages(query, next, 3)
  const pages = [
    ...(await crash.readWrites(query, 'page', jobId)),
    ...(await crash.readWrites(query, 'page', next)),
  ]
  assert.equal(new Set(pages.map(({ number }) => number)).size, pages.length, 'no page is read again')
  await cancel(next)
  assert.equal((await crash.waitForJob(query, next)).status, 'cancelled')

  const short = await crash.extract(client, await crash.uploadText(client, 3, 'short'))
  assert.equal((await crash.waitForJob(query, short)).status, 'done')
  assert.equal((await cancel(short)).status, 'done')
  assert.deepEqual((await crash.readJobRow(query, short)).result, { read: 3, unread: 0, skipped: 0 })
  assert.ok(worker.process.exitCode === null && worker.process.signalCode === null)
})

test('aborts a page during OCR', async (t) => {
  const bytes = await buildScanPdf(8, { sentences: 4 })
  const { id } = (await (await client.upload(bytes, 'scans.pdf')).json()) as { id: number }
  const jobId = await crash.extract(client, id)
  await crash.waitForPages(query, jobId, 1)
  const from = await crash.readClock(query)
  await cancel(jobId)
  assert.equal((await crash.waitForJob(query, jobId)).status, 'cancelled')
  t.diagnostic(`cancelled after ${Math.round((await crash.readClock(query)) - from)} ms`)
  const short = await crash.extract(client, await crash.uploadText(client, 2, 'after the scans'))
  assert.equal((await crash.waitForJob(query, short)).status, 'done')
})

test('stops an extraction when its document is trashed or deleted, or its owner is deleted', async () => {
  for (const rest of ['', '?permanent=true']) {
    const id = await crash.uploadText(client, PAGES, `deleted${rest}`)
    const jobId = await crash.extract(client, id)
    await crash.waitForPages(query, jobId, 3)
    assert.equal((await client.fetch(`/api/v1/documents/${id}${rest}`, { method: 'DELETE' })).status, 204)
    assert.equal((await crash.waitForJob(query, jobId)).status, 'cancelled')
  }
  const owner = await createClient(url)
  const { id } = await owner.register('leaver@example.com')
  const jobId = await crash.extract(owner, await crash.uploadText(owner, PAGES, 'of somebody who leaves'))
  await crash.waitForPages(query, jobId, 3)
  // The first account is an admin, who may delete others.
  assert.equal((await client.fetch(`/api/v1/auth/users/${id}`, { method: 'DELETE' })).status, 204)
  await until('the attempt ends', () =>
    worker!.log.some((line) => line.includes('An attempt ended') && line.includes(jobId)),
  )
  await until("the account's data is deleted", async () => {
    const rows = await query('select from account where id = $1', [id])
    return rows.length === 0
  })
  const left = `select from job where id = $1 union all select from document_page where job_id = $1`
  assert.deepEqual(await query(left, [jobId]), [])
  assert.ok((await crash.readWrites(query, 'page', jobId)).length < PAGES)
})

// Preloaded code that delays the start of a thread beyond the grace period for threads that ignore their abort signal.
const SLOW_START = `import { isMainThread } from 'node:worker_threads'
if (!isMainThread) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2700)`

test('cancels a job whose thread is still starting', async () => {
  const preload = `data:text/javascript,${encodeURIComponent(SLOW_START)}`
  await worker!.kill()
  const env = { WORKER_QUEUES: 'documents', NODE_OPTIONS: `--import=${preload}` }
  await startProcess('worker', url, env)
  const jobId = await crash.extract(client, await crash.uploadText(client, PAGES, 'not even begun'))
  await crash.waitForAttemptStart(query, jobId, 1)
  await cancel(jobId)
  assert.equal((await crash.waitForJob(query, jobId)).status, 'cancelled')
  const short = await crash.extract(client, await crash.uploadText(client, 2, 'after the slow start'))
  assert.equal((await crash.waitForJob(query, short)).status, 'done')
})

test('returns 404 for a job that does not exist', async () => {
  for (const id of ['00000000-0000-7000-8000-000000000000', 'nothing']) {
    const response = await client.fetch(`/api/v1/jobs/${id}`, { method: 'DELETE' })
    assert.equal(response.status, 404)
  }
})
