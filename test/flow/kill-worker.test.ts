import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../database.ts'
import * as crash from './crash.ts'
import { createGateAtPage } from './gate.ts'
import { startReader } from './reader.ts'

// `npm run bench -- recovery` measures how soon another worker restarts the job.
const PAGES = 200

const { url, query } = await createTestDatabase()
await crash.recordWrites(query)
const client = await startReader(url)
// The gate keeps each worker busy until the test kills it.
const gate = await createGateAtPage(url, 150)
const workers = await Promise.all([crash.startWorker(url, 'first'), crash.startWorker(url, 'second')])
/** The worker that the first test does not kill. */
let remaining = workers[0]!

test('another worker resumes the job of a killed worker', async (t) => {
  const id = await crash.uploadText(client, PAGES, 'one of two')
  const jobId = await crash.extract(client, id)
  const stream = await client.stream(`/api/v1/jobs/${jobId}/events`)
  await crash.waitForPages(query, jobId, 10)

  const [holder, other] = await crash.findHolder(query, jobId, workers)
  const killedAt = await crash.readClock(query)
  await holder.kill()
  await gate.open()
  const recoveryMs = (await crash.waitForAttemptStart(query, jobId, 2)) - killedAt
  t.diagnostic(`runs again after ${Math.round(recoveryMs)} ms`)

  await assertFinished(id, jobId, await crash.readWholeStream(stream))
  remaining = other
})

test('a worker that starts after the only one was killed resumes immediately', async (t) => {
  await gate.close()
  const id = await crash.uploadText(client, PAGES, 'the only one')
  const jobId = await crash.extract(client, id)
  const stream = await client.stream(`/api/v1/jobs/${jobId}/events`)
  await crash.waitForPages(query, jobId, 10)

  const killedAt = await crash.readClock(query)
  await remaining.kill()
  await gate.open()
  await crash.startWorker(url, 'next')
  const recoveryMs = (await crash.waitForAttemptStart(query, jobId, 2)) - killedAt
  t.diagnostic(`runs again after ${Math.round(recoveryMs)} ms`)

  await assertFinished(id, jobId, await crash.readWholeStream(stream))
})

async function assertFinished(
  id: number,
  jobId: string,
  frames: Parameters<typeof crash.assertComplete>[0],
): Promise<void> {
  const end = crash.assertComplete(frames)
  assert.deepEqual(end.result, { read: PAGES, unread: 0, skipped: 0 })
  await crash.assertGapless(query, jobId, frames)
  const written = await crash.assertPagesOnce(query, jobId, PAGES)
  assert.deepEqual([...new Set(written.map(({ attempt }) => attempt))], [1, 2])
  assert.deepEqual(await crash.readJobRow(query, jobId), {
    status: 'done',
    attempt: 2,
    tries: 1,
    interruptions: 1,
    result: end.result,
  })
  const pages = (await (await client.fetch(`/api/v1/documents/${id}/pages`)).json()) as { status: string }[]
  assert.equal(pages.filter((page) => page.status === 'read').length, PAGES)
}
