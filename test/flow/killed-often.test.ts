import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../database.ts'
import { IS_LONG } from '../runs.ts'
import * as crash from './crash.ts'
import { createGateAtPage } from './gate.ts'
import { startReader } from './reader.ts'

const KILLS = IS_LONG ? 20 : 3
const PAGES = IS_LONG ? 2000 : 200

const { url, query } = await createTestDatabase()
await crash.recordWrites(query)
const client = await startReader(url)
// The gate keeps the document unfinished until the last kill.
const gate = await createGateAtPage(url, PAGES - 30)

test('a document that makes progress is read completely, however often its worker is killed', async () => {
  const jobId = await crash.extract(client, await crash.uploadText(client, PAGES, 'killed often'))
  const stream = await client.stream(`/api/v1/jobs/${jobId}/events`)
  let worker = await crash.startWorker(url, 'worker')
  for (let attempt = 1; attempt <= KILLS; attempt++) {
    await crash.waitForPages(query, jobId, 2, attempt)
    await worker.kill()
    // Let the killed worker's last transaction finish.
    await gate.open()
    if (attempt < KILLS) await gate.close()
    worker = await crash.startWorker(url, 'worker')
  }
  const frames = await stream.waitForEnd()
  assert.deepEqual(crash.assertComplete(frames).result, { read: PAGES, unread: 0, skipped: 0 })
  await crash.assertGapless(query, jobId, frames)
  await crash.assertPagesOnce(query, jobId, PAGES)
  assert.equal((await crash.readJobRow(query, jobId)).tries, 1)
})
