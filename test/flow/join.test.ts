import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../database.ts'
import * as crash from './crash.ts'
import { createClient, startReader } from './reader.ts'

// Enough pages for several batches, because the other requests join once the first batch is stored.
const PAGES = 200

const { url, query } = await createTestDatabase()
// At 30 ms a page, the document is still being read when the last request of a test arrives.
await crash.recordWrites(query, 30)
const client = await startReader(url)
const otherClient = await createClient(url)
otherClient.token = client.token
await crash.startWorker(url, 'worker')

const readJobs = (id: number): Promise<Record<string, unknown>[]> =>
  query('select id, attempt from job where mailbox = $1 order by ordinal', [`document:${id}`])

test('two concurrent requests on two edges become one job', async () => {
  const id = await crash.uploadText(client, 5, 'twice at once')
  const ids = await Promise.all([crash.extract(client, id), crash.extract(otherClient, id)])
  assert.equal(ids[0], ids[1])
  assert.equal((await crash.waitForJob(query, ids[0]!)).status, 'done')
  assert.deepEqual(await readJobs(id), [{ id: ids[0], attempt: 1 }])
})

test('a hundred requests join a running job, and a request after its end starts another', async () => {
  const id = await crash.uploadText(client, PAGES, 'a hundred times')
  const jobId = await crash.extract(client, id)
  await crash.waitForPages(query, jobId, 2)
  const background = Array.from({ length: 80 }, (_, n) => crash.extract(n % 2 ? client : otherClient, id))
  const waiting = Array.from({ length: 20 }, (_, n) =>
    (n % 2 ? client : otherClient).post(`/api/v1/documents/${id}/extract`),
  )
  assert.deepEqual(new Set(await Promise.all(background)), new Set([jobId]))
  const answers = await Promise.all(
    (await Promise.all(waiting)).map(async (answer) => [answer.status, await answer.json()]),
  )
  for (const answer of answers) assert.deepEqual(answer, [200, { read: PAGES, unread: 0, skipped: 0 }])
  assert.deepEqual(await readJobs(id), [{ id: jobId, attempt: 1 }])
  await crash.assertPagesOnce(query, jobId, PAGES)

  const later = await crash.extract(client, id)
  assert.notEqual(later, jobId)
  assert.deepEqual((await crash.waitForJob(query, later)).result, { read: 0, unread: 0, skipped: PAGES })
})

test('documents do not wait for each other, and all are read', async () => {
  const ids = await Promise.all(
    Array.from({ length: 6 }, (_, n) => crash.uploadText(client, 2, `one of many ${n}`)),
  )
  const jobs = await Promise.all(ids.map((id) => crash.extract(client, id)))
  assert.equal(new Set(jobs).size, jobs.length)
  for (const job of jobs) {
    const { status, result } = await crash.waitForJob(query, job)
    assert.deepEqual([status, result], ['done', { read: 2, unread: 0, skipped: 0 }])
  }
})
