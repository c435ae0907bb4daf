import assert from 'node:assert/strict'
import { mock, type TestContext, test } from 'node:test'
import pg from 'pg'
import { Client, type Stream } from '../service.ts'
import { until } from '../until.ts'
import { startEdgeAndDatabase } from './harness.ts'
import { createLedger } from './ledger.ts'

/** The stream of all jobs must report each end, even if it becomes visible late or without a notification. */

// Stop the 5 s polling interval. In this file an edge polls only after a notification.
mock.timers.enable({ apis: ['setInterval'] })
const { api, ...database } = await startEdgeAndDatabase()
const ledger = createLedger(database)
await api.register('admin@example.com')
const ann = await api.register('ann@example.com')

async function openStream(t: TestContext, lastSeen?: string): Promise<Stream> {
  const client = new Client(api.port)
  client.token = ann.token
  const stream = await client.stream(
    '/api/v1/jobs/events',
    lastSeen === undefined ? {} : { 'last-event-id': lastSeen },
  )
  t.after(() => stream.close())
  return stream
}
const statusesOf = (stream: Stream, id: string) =>
  stream.frames.filter(({ data }) => data.job_id === id).map(({ data }) => data.status)
const waitForStatus = (stream: Stream, id: string, status = 'done') =>
  stream.until(`${id} is ${status}`, () => statusesOf(stream, id).includes(status))

async function runQuietly<T>(work: () => Promise<T>): Promise<T> {
  ledger.isQuiet = true
  const value = await work()
  ledger.isQuiet = false
  return value
}

/** Waits until the edge has polled and the stream has the resulting frames. */
async function waitForPoll(stream: Stream): Promise<void> {
  const marker = await runQuietly(() => ledger.addFinished(null))
  await ledger.notifyAll()
  await waitForStatus(stream, marker)
}

const LONG_DELAY_MS = 3_000
const STEP_MS = 250

/** Repeats an action a few times a second until a run starts more than `LONG_DELAY_MS` after `ms`. */
const repeatUntilLongAfter = (what: string, ms: number, act: () => Promise<unknown>): Promise<unknown> =>
  until(what, async () => {
    const startedAt = Date.now()
    await act()
    if (startedAt > ms + LONG_DELAY_MS) return true
    await until('the next step', () => Date.now() >= startedAt + STEP_MS)
    return false
  })

/** Makes the edge poll and notify until more than `LONG_DELAY_MS` after a time. */
const pollLongAfter = (stream: Stream, ms: number): Promise<unknown> =>
  repeatUntilLongAfter('it has looked some seconds later', ms, async () => {
    await waitForPoll(stream)
    await waitForStatus(stream, await ledger.addFinished(ann.id))
  })

async function addRunningJob(stream: Stream): Promise<{ id: string; attempt: number }> {
  const id = await ledger.add(ann.id)
  const attempt = await ledger.claim(id)
  await waitForStatus(stream, id, 'running')
  // A new stream may have read the first job before its notification. The second job comes after that notification.
  for (const _ of ['begun', 'told']) await waitForStatus(stream, await ledger.addFinished(null))
  return { id, attempt }
}

/** Starts to finish a job in an open transaction, as if a worker waited for a lock. `end` commits it. */
async function startLateFinish(t: TestContext, { id, attempt }: { id: string; attempt: number }) {
  const worker = new pg.Client({ connectionString: database.url })
  await worker.connect()
  t.after(() => worker.end())
  await worker.query('begin')
  const { rows } = await worker.query('select extract(epoch from now()) * 1000 as ms')
  return {
    begunAt: Number(rows[0].ms),
    end: async () => {
      await worker.query('select job_finish($1::jsonb, 2, 5)', [
        JSON.stringify([{ id, attempt, outcome: 'done' }]),
      ])
      await worker.query('commit')
    },
  }
}

test('a resumed stream gets an end that took seconds to commit, although others ended meanwhile', async (t) => {
  const stream = await openStream(t)
  const job = await addRunningJob(stream)
  const late = await startLateFinish(t, job)
  await pollLongAfter(stream, late.begunAt)
  stream.close()
  await late.end()
  const again = await openStream(t, stream.lastId)
  await waitForStatus(again, job.id)
  await waitForPoll(again)
  assert.deepEqual(statusesOf(again, job.id), ['done'])
})

test('resumed and open streams get a late end without a notification', async (t) => {
  const stays = await openStream(t)
  const job = await addRunningJob(stays)
  const late = await startLateFinish(t, job)
  const leaves = await openStream(t)
  await waitForStatus(leaves, job.id, 'running')
  await pollLongAfter(stays, late.begunAt)
  leaves.close()
  const again = await openStream(t, leaves.lastId)
  await waitForStatus(again, job.id, 'running')
  await late.end()
  await waitForPoll(stays)
  await waitForPoll(again)
  assert.deepEqual([statusesOf(again, job.id).at(-1), statusesOf(stays, job.id).at(-1)], ['done', 'done'])
})

test('a resumed stream gets an end without a notification, although others ended seconds later', async (t) => {
  const stream = await openStream(t)
  const { id } = await addRunningJob(stream)
  await runQuietly(() => ledger.finish(id, 'done', { result: null }))
  const endedAt = Date.now()
  await repeatUntilLongAfter('others ended later', endedAt, async () =>
    waitForStatus(stream, await ledger.addFinished(ann.id)),
  )
  assert.equal(statusesOf(stream, id).at(-1), 'running')
  stream.close()
  await waitForStatus(await openStream(t, stream.lastId), id)
})

test('ids advance with the visibility horizon: a resumed stream does not repeat old ends', async (t) => {
  const stream = await openStream(t)
  const old = await ledger.addFinished(ann.id)
  await waitForStatus(stream, old)
  await pollLongAfter(stream, Date.now())
  await waitForPoll(stream)
  const last = await ledger.addFinished(ann.id)
  await waitForStatus(stream, last)
  stream.close()
  const again = await openStream(t, stream.lastId)
  await waitForStatus(again, last)
  assert.deepEqual(statusesOf(again, old), [])
})
