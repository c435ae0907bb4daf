import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../database.ts'
import { startEdge } from '../edge/harness.ts'
import { Client, type Frame, launchProcess, startProcess } from '../service.ts'
import { stopAfterFile } from '../services.ts'
import { until } from '../until.ts'
import * as crash from './crash.ts'
import { createGateAtPage } from './gate.ts'

const PAGES = 120

const { url, query } = await createTestDatabase()
await crash.recordWrites(query)
// The gate keeps the job running until the edge has been killed.
const gate = await createGateAtPage(url, 100)
// The edge of the test's process stores its key first, so that the other edge shares it.
const otherEdge = await startEdge(url)
const edge = await startProcess('edge', url)
const client = new Client(edge.ready.port!)
await client.register('reader@example.com')

test('readers of a killed edge get the rest from another, and waiting work continues', async () => {
  const id = await crash.uploadText(client, PAGES, 'streamed')
  const headers = { 'idempotency-key': 'read it once' }
  const waiting = client.post(`/api/v1/documents/${id}/extract`, undefined, headers).then(
    (response) => response.status,
    () => 'broken',
  )
  const jobId = await until('the job exists', async () => {
    const [row] = await query(`select id from job where name = 'documents.extract'`)
    return row?.id as string | undefined
  })
  const [stream, all] = await Promise.all([
    client.stream(`/api/v1/jobs/${jobId}/events`),
    client.stream('/api/v1/jobs/events'),
  ])
  // The worker starts after the streams are open, so that they show all of its events.
  const worker = await launchProcess('worker', url, { WORKER_QUEUES: 'documents' })
  stopAfterFile(() => worker.kill())
  await crash.waitForPages(query, jobId, 8)
  await stream.until('some frames have arrived', (frames) => frames.length >= 5)
  await edge.kill()
  await until('the stream breaks', () => stream.ended && all.ended)
  assert.equal(await waiting, 'broken')
  await gate.open()

  const again = new Client(otherEdge.port)
  again.token = client.token
  const rest = await again.stream(`/api/v1/jobs/${jobId}/events`, { 'last-event-id': stream.lastId })
  const allAgain = await again.stream('/api/v1/jobs/events', { 'last-event-id': all.lastId })
  const frames: Frame[] = [...stream.frames, ...(await crash.readWholeStream(rest))]
  assert.deepEqual(crash.assertComplete(frames).result, { read: PAGES, unread: 0, skipped: 0 })
  await crash.assertGapless(query, jobId, frames)
  await crash.assertPagesOnce(query, jobId, PAGES)
  assert.equal((await crash.readJobRow(query, jobId)).attempt, 1)
  await allAgain.until('the other stream has ended', (some) => countEnded(some, jobId) === 1)

  const late = await again.fetch(`/api/v1/jobs/${jobId}/events`, {
    headers: { 'last-event-id': rest.lastId },
  })
  assert.equal(late.status, 204)
  const repeated = await again.post(`/api/v1/documents/${id}/extract`, undefined, headers)
  assert.deepEqual([repeated.status, await repeated.json()], [200, { read: PAGES, unread: 0, skipped: 0 }])
  allAgain.close()
})

test('a stream opened after the end returns the end, except to readers that already have it', async () => {
  const reader = new Client(otherEdge.port)
  reader.token = client.token
  const jobId = await crash.extract(reader, await crash.uploadText(reader, 3, 'short'))
  await crash.waitForJob(query, jobId)
  const first = await crash.readWholeStream(await reader.stream(`/api/v1/jobs/${jobId}/events`))
  assert.deepEqual(
    first.map(({ data }) => data.status),
    ['done'],
  )
  const fromStart = await crash.readWholeStream(
    await reader.stream(`/api/v1/jobs/${jobId}/events`, { 'last-event-id': '0' }),
  )
  crash.assertComplete(fromStart)
  const [row] = await query('select count(*)::int as count from job_event where job_id = $1', [jobId])
  assert.equal(fromStart.length, row!.count)
  const again = await reader.fetch(`/api/v1/jobs/${jobId}/events`, {
    headers: { 'last-event-id': first[0]!.id },
  })
  assert.equal(again.status, 204)
})

function countEnded(frames: readonly Frame[], jobId: string): number {
  return frames.filter(({ data }) => data.job_id === jobId && data.status === 'done').length
}
