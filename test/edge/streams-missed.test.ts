import assert from 'node:assert/strict'
import { mock, type TestContext, test } from 'node:test'
import pg from 'pg'
import { Client, type Stream } from '../service.ts'
import { until } from '../until.ts'
import { edgeAndDatabase } from './harness.ts'
import { ledgerOf } from './ledger.ts'

/** The stream of all jobs must report each end, even if it becomes visible late or without a notification. */

// Stop the 5 s polling interval. In this file an edge polls only after a notification.
mock.timers.enable({ apis: ['setInterval'] })
const { api, ...database } = await edgeAndDatabase()
const ledger = ledgerOf(database)
await api.register('admin@example.com')
const ann = await api.register('ann@example.com')

async function open(t: TestContext, lastSeen?: string): Promise<Stream> {
  const client = new Client(api.port)
  client.token = ann.token
  const stream = await client.stream(
    '/api/v1/jobs/events',
    lastSeen === undefined ? {} : { 'last-event-id': lastSeen },
  )
  t.after(() => stream.close())
  return stream
}
const statuses = (stream: Stream, id: string) =>
  stream.frames.filter(({ data }) => data.job_id === id).map(({ data }) => data.status)
const hears = (stream: Stream, id: string, status = 'done') =>
  stream.until(`${id} is ${status}`, () => statuses(stream, id).includes(status))

async function quietly<T>(work: () => Promise<T>): Promise<T> {
  ledger.isQuiet = true
  const value = await work()
  ledger.isQuiet = false
  return value
}

/** Waits until the edge has polled and the stream has the resulting frames. */
async function poll(stream: Stream): Promise<void> {
  const marker = await quietly(() => ledger.addFinished(null))
  await ledger.notify('*')
  await hears(stream, marker)
}

const LONG_MS = 3_000
const STEP_MS = 250

/** Repeats an action a few times a second until a run starts more than `LONG_MS` after `ms`. */
const untilLongAfter = (what: string, ms: number, act: () => Promise<unknown>): Promise<unknown> =>
  until(what, async () => {
    const startedAt = Date.now()
    await act()
    if (startedAt > ms + LONG_MS) return true
    await until('the next step', () => Date.now() >= startedAt + STEP_MS)
    return false
  })

/** Makes the edge poll and notify until more than `LONG_MS` after a time. */
const pollLongAfter = (stream: Stream, ms: number): Promise<unknown> =>
  untilLongAfter('it has looked some seconds later', ms, async () => {
    await poll(stream)
    await hears(stream, await ledger.addFinished(ann.id))
  })

async function running(stream: Stream): Promise<{ id: string; attempt: number }> {
  const id = await ledger.add(ann.id)
  const attempt = await ledger.claim(id)
  await hears(stream, id, 'running')
  // A new stream may have read the first job before its notification. The second job comes after that notification.
  for (const _ of ['begun', 'told']) await hears(stream, await ledger.addFinished(null))
  return { id, attempt }
}

/** Starts to finish a job in an open transaction, as if a worker waited for a lock. `end` commits it. */
async function finishLate(t: TestContext, { id, attempt }: { id: string; attempt: number }) {
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
  const stream = await open(t)
  const job = await running(stream)
  const late = await finishLate(t, job)
  await pollLongAfter(stream, late.begunAt)
  stream.close()
  await late.end()
  const again = await open(t, stream.lastId)
  await hears(again, job.id)
  await poll(again)
  assert.deepEqual(statuses(again, job.id), ['done'])
})

test('resumed and open streams get a late end without a notification', async (t) => {
  const stays = await open(t)
  const job = await running(stays)
  const late = await finishLate(t, job)
  const leaves = await open(t)
  await hears(leaves, job.id, 'running')
  await pollLongAfter(stays, late.begunAt)
  leaves.close()
  const again = await open(t, leaves.lastId)
  await hears(again, job.id, 'running')
  await late.end()
  await poll(stays)
  await poll(again)
  assert.deepEqual([statuses(again, job.id).at(-1), statuses(stays, job.id).at(-1)], ['done', 'done'])
})

test('a resumed stream gets an end without a notification, although others ended seconds later', async (t) => {
  const stream = await open(t)
  const { id } = await running(stream)
  await quietly(() => ledger.finish(id, 'done', { result: null }))
  const endedAt = Date.now()
  await untilLongAfter('others ended later', endedAt, async () =>
    hears(stream, await ledger.addFinished(ann.id)),
  )
  assert.equal(statuses(stream, id).at(-1), 'running')
  stream.close()
  await hears(await open(t, stream.lastId), id)
})

test('ids advance with the visibility horizon: a resumed stream does not repeat old ends', async (t) => {
  const stream = await open(t)
  const old = await ledger.addFinished(ann.id)
  await hears(stream, old)
  await pollLongAfter(stream, Date.now())
  await poll(stream)
  const last = await ledger.addFinished(ann.id)
  await hears(stream, last)
  stream.close()
  const again = await open(t, stream.lastId)
  await hears(again, last)
  assert.deepEqual(statuses(again, old), [])
})
