import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../database.ts'
import { type Child, Client, startProcess } from '../service.ts'
import { until } from '../until.ts'
import * as crash from './crash.ts'
import { startReader } from './reader.ts'

const STOP_MS = 10_000
const PAGES = 200

const { url, query } = await createTestDatabase()
// The document takes longer than a stopping worker waits for its jobs.
await crash.recordWrites(query, 50)
const client = await startReader(url)
// No worker is killed here, and with a long lease none is declared dead.
const lease = { LEASE_SECONDS: '30' }
const workers = await Promise.all(['first', 'second'].map((name) => crash.startWorker(url, name, lease)))
/** The worker that the first test leaves running. */
let remaining = workers[0]!

/** Sends SIGTERM and returns the exit code. The process must exit within a platform's usual grace period. */
async function stopGracefully({ process }: Child): Promise<number | null> {
  process.kill('SIGTERM')
  await until(
    'the process has exited',
    () => process.exitCode !== null || process.signalCode !== null,
    STOP_MS,
  )
  return process.exitCode
}

test('a stopping worker hands its job over', async () => {
  const id = await crash.uploadText(client, PAGES, 'handed over')
  const jobId = await crash.extract(client, id)
  const stream = await client.stream(`/api/v1/jobs/${jobId}/events`)
  await crash.waitForPages(query, jobId, 3)

  const [holder, other] = await crash.findHolder(query, jobId, workers)
  assert.equal(await stopGracefully(holder), 0)
  const frames = await crash.readWholeStream(stream)
  assert.deepEqual(crash.assertComplete(frames).result, { read: PAGES, unread: 0, skipped: 0 })
  await crash.assertGapless(query, jobId, frames)
  await crash.assertPagesOnce(query, jobId, PAGES)
  const { attempt, tries, interruptions } = await crash.readJobRow(query, jobId)
  assert.deepEqual({ attempt, tries, interruptions }, { attempt: 2, tries: 1, interruptions: 0 })
  const leases = await query('select id from worker_lease where id = $1', [holder.ready.lease])
  assert.deepEqual(leases, [], 'the lease is given back')
  remaining = other
})

test('a stopping edge ends its streams for a reconnect and answers every request, if necessary with the id of its job', async () => {
  const leaving = await startProcess('edge', url)
  const asking = new Client(leaving.ready.port!)
  asking.token = client.token
  const task = { task_name: 'io_simulation_task', queue_type: 'load_test' }
  const waiting = await asking.post('/api/v1/tasks/enqueue', task)
  // No worker serves this queue, so the job keeps waiting.
  const { task_id: waitingId } = (await waiting.json()) as { task_id: string }
  const paths = [`/api/v1/jobs/${waitingId}/events`, '/api/v1/jobs/events']
  const texts = await Promise.all(paths.map(async (path) => collectText(await asking.fetch(path))))
  await until('the streams show the job', () => texts.every(({ text }) => text.includes(waitingId)))
  const id = await crash.uploadText(asking, 4, 'asked for')
  const answer = asking.post(`/api/v1/documents/${id}/extract`)
  const jobId = await until('the extraction exists', async () => {
    const [row] = await query('select id from job where mailbox = $1', [`document:${id}`])
    return row?.id as string
  })
  await crash.waitForPages(query, jobId, 1)
  const form = new FormData()
  form.set('file', new File(['text'], 'post.md'))
  const unended = asking.fetch('/api/v1/blog/import', { method: 'POST', body: form })
  const unendedId = await until('the import exists', async () => {
    const [row] = await query(`select id from job where name = 'blog.import'`)
    return row?.id as string
  })
  const stopped = stopGracefully(leaving)
  const { status } = await answer
  assert.equal(status, 200)
  const late = await unended
  assert.deepEqual([late.status, await late.json()], [202, { job_id: unendedId }])
  assert.equal(await stopped, 0)
  await until('the streams have ended', () => texts.every(({ ended }) => ended))
  for (const { text, broken } of texts) {
    assert.equal(broken, false, 'the stream ends in order')
    assert.match(text, /retry: \d+\n\n$/)
  }
})

test('a stopping worker finishes a job that is nearly done', async () => {
  const jobId = await crash.extract(client, await crash.uploadText(client, 3, 'nearly done'))
  await crash.waitForPages(query, jobId, 1)
  // Under foreman, Ctrl-C in a terminal sends two signals: one from the terminal and one from foreman.
  remaining.process.kill('SIGINT')
  assert.equal(await stopGracefully(remaining), 0)
  const { status, attempt } = await crash.readJobRow(query, jobId)
  assert.deepEqual({ status, attempt }, { status: 'done', attempt: 1 })
})

interface CollectedText {
  text: string
  ended: boolean
  broken: boolean
}

/** Starts to collect the text of a response. */
function collectText(response: Response): CollectedText {
  const read: CollectedText = { text: '', ended: false, broken: false }
  const take = async (): Promise<void> => {
    const decoder = new TextDecoder()
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      read.text += decoder.decode(chunk, { stream: true })
    }
  }
  take()
    .catch(() => {
      read.broken = true
    })
    .finally(() => {
      read.ended = true
    })
  return read
}
