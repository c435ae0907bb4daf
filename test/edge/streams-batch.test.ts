import assert from 'node:assert/strict'
import { after, mock, test } from 'node:test'
import { followBatch } from '../../edge/streams/follow-selected.ts'
import { parseJobEvent } from '../../edge/streams/job-event.ts'
import type { SseFrame } from '../../edge/streams/sse.ts'
import { readCurrentStates } from '../../sql/jobs/events.ts'
import { createReader } from '../../sql/reads/reader.ts'
import { Client } from '../service.ts'
import { until } from '../until.ts'
import { FakeStream } from './fake-stream.ts'
import { startEdgeAndDatabase } from './harness.ts'
import { createLedger } from './ledger.ts'

/** The stream of a batch has its progress, the end of each member, then its own end as the last frame. */

// Stop the 5 s polling interval. In this file an edge polls only after a notification.
mock.timers.enable({ apis: ['setInterval'] })
const { api, ...database } = await startEdgeAndDatabase()
const ledger = createLedger(database)
await api.register('admin@example.com')
const ann = await api.register('ann@example.com')
const reader = createReader({ url: database.url, applicationName: 'batch' })
after(() => reader.close())
const { edge } = api.serving

const BATCH = { name: 'jobs.batch', queue: 'system', is_batch: true, payload: { is_open: true } }
const addBatch = (): Promise<string> => ledger.add(ann.id, BATCH)
const addMembers = (batch: string, count: number): Promise<string[]> =>
  Promise.all(Array.from({ length: count }, () => ledger.add(ann.id, { batch_id: batch })))
const notify = (rows: readonly Record<string, unknown>[]): Promise<void> =>
  ledger.notify(...rows.map(({ id }) => id as string))
const close = async (batch: string): Promise<void> =>
  notify(await database.query('select job_close($1) as id', [batch]))
const cancel = async (id: string): Promise<void> =>
  notify(await database.query('select job_cancel(array[$1::uuid]) as id', [id]))

/** Ends jobs in one transaction, and notifies as a worker does unless the ledger is quiet. */
async function end(...ids: readonly string[]): Promise<void> {
  const entries = []
  for (const id of ids) entries.push({ id, attempt: await ledger.claim(id), outcome: 'done', result: { id } })
  const rows = await database.query('select job_finish($1::jsonb, 2, 5) as id', [JSON.stringify(entries)])
  if (!ledger.isQuiet) await notify(rows)
}

const open = async (batch: string, lastEventId = '') => {
  const [line] = await reader.texts(readCurrentStates, [[batch]])
  const subscription = {
    viewer: [ann.id, false] as const,
    lastEventId,
    now: edge.healthCheck.now(),
    reader,
    listReader: reader,
    onError: (error: unknown) => assert.fail(String(error)),
  }
  const source = followBatch(edge.hub, subscription, parseJobEvent(line!))
  if (source === 'ended') return null
  const stream = new FakeStream()
  const stop = source.open(stream)
  return { stream, stop, frames: () => stream.sent.flat() }
}

const parse = (frame: SseFrame) =>
  JSON.parse(frame.data) as { job_id: string; status: string; result?: unknown; progress?: object }
const eventsOf = (frames: readonly SseFrame[]) =>
  frames.map((frame) => [frame.event, parse(frame).job_id, parse(frame).status] as const)
const endsOf = (frames: readonly SseFrame[], batch: string) =>
  eventsOf(frames)
    .filter(([event, id]) => event === 'status' && id !== batch)
    .map(([, id]) => id)
const waitForEnd = async ({ stream }: { stream: FakeStream }): Promise<void> => {
  await until('the stream has ended', () => stream.closed)
}

test('a stream has progress, the end of each member, and the end of the batch as the last frame', async () => {
  const batch = await addBatch()
  const members = await addMembers(batch, 3)
  await end(members[0]!)
  const opened = (await open(batch))!
  await until('the first end', () => endsOf(opened.frames(), batch).length === 1)
  assert.deepEqual(eventsOf(opened.frames())[0], ['progress', batch, 'waiting'])
  await end(members[1]!)
  await until('the second end', () => endsOf(opened.frames(), batch).length === 2)
  await close(batch)
  await end(members[2]!)
  await end(batch)
  await waitForEnd(opened)
  const frames = opened.frames()
  assert.deepEqual(endsOf(frames, batch), members)
  const [last] = frames.slice(-1)
  assert.deepEqual(
    [last!.event, last!.id, parse(last!)],
    ['status', 'end', { ...parse(last!), job_id: batch, status: 'done', result: { id: batch } }],
  )
  assert.equal(
    frames.filter(({ event, data }) => event === 'status' && data.includes(`"job_id":"${batch}"`)).length,
    1,
  )
  const progress = frames.filter(({ event }) => event === 'progress').map(parse)
  assert.ok(progress.every(({ job_id }) => job_id === batch))
  assert.deepEqual(progress[0]!.progress, { current: 1, total: 3 })
  assert.equal(await open(batch, 'end'), null, 'nothing is left')
})

test('ends whose notification was lost precede the end of the batch', async () => {
  const batch = await addBatch()
  const members = await addMembers(batch, 40)
  const opened = (await open(batch))!
  await end(members[0]!)
  await until('the first end', () => endsOf(opened.frames(), batch).length === 1)
  ledger.isQuiet = true
  await end(...members.slice(1))
  await database.query('select job_close($1)', [batch])
  await end(batch)
  ledger.isQuiet = false
  await ledger.notify(batch)
  await waitForEnd(opened)
  const frames = opened.frames()
  assert.deepEqual(endsOf(frames, batch).sort(), [...members].sort(), 'each once')
  assert.deepEqual(eventsOf(frames).at(-1), ['status', batch, 'done'])
})

test('a stream of an ended batch has all ends, and a resumed one those since its last event', async () => {
  const batch = await addBatch()
  const members = await addMembers(batch, 3)
  const opened = (await open(batch))!
  await end(members[0]!)
  await until('the first end', () => endsOf(opened.frames(), batch).length === 1)
  // An event of another job confirms that the first end is complete.
  await until('an id', async () => {
    const [witness] = await addMembers(batch, 1)
    await end(witness!)
    members.push(witness!)
    return Number(opened.frames().at(-1)!.id) > 0
  })
  opened.stop()
  await close(batch)
  await end(members[1]!)
  await end(members[2]!)
  await end(batch)
  const whole = (await open(batch))!
  await waitForEnd(whole)
  assert.deepEqual(endsOf(whole.frames(), batch).sort(), [...members].sort())
  const back = (await open(batch, opened.frames().at(-1)!.id))!
  await waitForEnd(back)
  const missed = [members[1], members[2]] as string[]
  assert.deepEqual(
    endsOf(back.frames(), batch).filter((id) => missed.includes(id)),
    missed,
  )
  for (const { frames } of [whole, back])
    assert.deepEqual(eventsOf(frames()).at(-1), ['status', batch, 'done'])
})

test('a cancelled batch ends its stream after the ends of its members', async () => {
  const batch = await addBatch()
  const members = await addMembers(batch, 5)
  const attempt = await ledger.claim(members[0]!)
  const opened = (await open(batch))!
  await cancel(batch)
  await until('the ends', () => endsOf(opened.frames(), batch).length === 4)
  assert.equal(opened.stream.closed, false, 'one still runs')
  const entry = [{ id: members[0], attempt, outcome: 'cancelled' }]
  await notify(await database.query('select job_finish($1::jsonb, 2, 5) as id', [JSON.stringify(entry)]))
  await waitForEnd(opened)
  assert.deepEqual(endsOf(opened.frames(), batch).sort(), [...members].sort())
  assert.deepEqual(eventsOf(opened.frames()).at(-1), ['status', batch, 'cancelled'])
})

test('progress comes at most four times a second', async () => {
  const batch = await addBatch()
  const members = await addMembers(batch, 30)
  const opened = (await open(batch))!
  const startedAt = performance.now()
  for (const member of members) await end(member)
  await close(batch)
  await end(batch)
  await waitForEnd(opened)
  const seconds = (performance.now() - startedAt) / 1000
  const reports = opened.frames().filter(({ event }) => event === 'progress')
  // The first state, and the start of the batch's own attempt, are not reports.
  assert.ok(reports.length <= 4 * seconds + 4, `${reports.length} in ${seconds} s`)
  assert.equal(endsOf(opened.frames(), batch).length, 30)
})

test('the route streams a batch to its owner, and is a 404 for others', async () => {
  const bob = await api.register('bob@example.com')
  const batch = await addBatch()
  const [member] = await addMembers(batch, 1)
  const path = `/api/v1/batches/${batch}/events`
  for (const [where, token] of [
    [path, bob.token],
    ['/api/v1/batches/x/events', ann.token],
  ] as const) {
    const { status, json } = await api.get(where, { token })
    assert.deepEqual([status, json.code], [404, 'batch.missing'])
  }
  const client = new Client(api.port)
  client.token = ann.token
  const stream = await client.stream(path)
  await stream.until('the progress', (frames) => frames[0]?.event === 'progress')
  await end(member!)
  await close(batch)
  await end(batch)
  const frames = await stream.waitForEnd()
  assert.deepEqual(
    frames.filter(({ event }) => event === 'status').map(({ id, data }) => [id === 'end', data.job_id]),
    [
      [false, member],
      [true, batch],
    ],
  )
  assert.equal((await api.get(`${path}?last_event_id=end`, { token: ann.token })).status, 204)
})
