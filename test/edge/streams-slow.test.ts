import assert from 'node:assert/strict'
import net from 'node:net'
import { test } from 'node:test'
import { followJob } from '../../edge/streams/follow.ts'
import { type FollowAllOptions, followAllJobs } from '../../edge/streams/follow-all.ts'
import type { Hub } from '../../edge/streams/hub.ts'
import type { JobEvent } from '../../edge/streams/job-event.ts'
import type { SseFrame } from '../../edge/streams/sse.ts'
import { until } from '../until.ts'
import { FakeStream } from './fake-stream.ts'
import { startEdgeAndDatabase } from './harness.ts'
import { createLedger } from './ledger.ts'

/** Slow subscribers must get the latest state, without a backlog in the edge. */

const { api, ...database } = await startEdgeAndDatabase()
const ledger = createLedger(database)
const { token, id: owner } = await api.register('owner@example.com')

const createEvent = (seq: number, status = 'running', jobId = 'a', kind = 'status'): JobEvent => ({
  jobId,
  seq,
  kind,
  status,
  ownerId: null,
  queue: 'test',
  task: 'test.task',
  batchId: null,
  frame: `{"n":${seq}}`,
})

/** Creates a hub that delivers the events of a list on demand. */
function createFakeHub(): {
  hub: Hub & { knownUntil: number }
  events: JobEvent[]
  states: JobEvent[]
  deliver(): void
  subscribers(): number
} {
  const events: JobEvent[] = []
  const states: JobEvent[] = []
  const watchers = new Set<{ after: number; push: (events: readonly JobEvent[]) => void }>()
  const everything = new Set<(states: readonly JobEvent[]) => void>()
  const deliver = (): void => {
    for (const watcher of [...watchers]) {
      const news = events.filter(({ seq }) => seq > watcher.after)
      if (news.length === 0) continue
      watcher.after = news.at(-1)!.seq
      watcher.push(news)
    }
    for (const push of everything) push(states.splice(0))
  }
  const hub = {
    knownUntil: Date.now(),
    watchJob: (_: string, after: number, push: (events: readonly JobEvent[]) => void) => {
      const watcher = { after, push }
      watchers.add(watcher)
      return () => watchers.delete(watcher)
    },
    watchAll: (push: (states: readonly JobEvent[]) => void) => {
      everything.add(push)
      return () => everything.delete(push)
    },
  } as unknown as Hub & { knownUntil: number }
  return { hub, events, states, deliver, subscribers: () => watchers.size + everything.size }
}

const idsOf = (frames: readonly SseFrame[]) => frames.map(({ id }) => Number(id))

test('a slow subscriber of one job causes no reads and then gets only the latest state', () => {
  const { hub, events, deliver, subscribers } = createFakeHub()
  const stream = new FakeStream()
  followJob(hub, createEvent(0), null).open(stream)
  stream.room = 0
  for (let seq = 1; seq <= 1000; seq++) {
    events.push(createEvent(seq))
    deliver()
  }
  assert.deepEqual(stream.sent.map(idsOf), [[0], [1]], 'the one that filled the pipe, and none behind it')
  assert.equal(subscribers(), 0)
  stream.catchUp()
  deliver()
  assert.deepEqual(stream.sent.slice(2).map(idsOf), [[1000]])
  events.push(createEvent(1001), createEvent(1002, 'done'))
  deliver()
  assert.deepEqual(
    stream.sent
      .flat()
      .map(({ id }) => Number(id))
      .slice(-2),
    [1000, 1002],
  )
  assert.deepEqual([stream.closed, subscribers()], [true, 0])
})

test('frames other than states are never skipped, however slow the subscriber', () => {
  const { hub, events, deliver } = createFakeHub()
  const stream = new FakeStream()
  followJob(hub, createEvent(0), null).open(stream)
  stream.room = 0
  events.push(createEvent(1))
  deliver()
  for (let seq = 2; seq <= 9; seq++)
    events.push(createEvent(seq, seq % 2 ? 'running' : '', 'a', seq % 2 ? 'status' : 'chunk'))
  stream.catchUp()
  deliver()
  assert.deepEqual(idsOf(stream.sent.at(-1)!), [2, 4, 6, 8, 9])
})

test('a subscriber that is slow at the end still gets the terminal frame', () => {
  const { hub, events, deliver } = createFakeHub()
  const stream = new FakeStream()
  followJob(hub, createEvent(0), null).open(stream)
  stream.room = 0
  events.push(createEvent(1))
  deliver()
  events.push(createEvent(2), createEvent(3, 'done'))
  deliver()
  assert.equal(stream.closed, false)
  stream.catchUp()
  deliver()
  assert.deepEqual([idsOf(stream.sent.at(-1)!), stream.closed], [[3], true])
})

test('events after the terminal one are not sent', () => {
  const { hub, events, deliver } = createFakeHub()
  const stream = new FakeStream()
  followJob(hub, createEvent(0), null).open(stream)
  events.push(createEvent(1), createEvent(2, 'done'), createEvent(3, 'done'), createEvent(4))
  deliver()
  assert.deepEqual([stream.sent.flatMap(idsOf), stream.closed], [[0, 1, 2], true])
})

/**
 * Subscribes to all jobs and records the table reads of the subscriber. All jobs in the table are live except those in
 * `ends`.
 */
function subscribeToAll(since: number | null = null, more: Partial<FollowAllOptions> = {}) {
  const { hub, states, deliver, subscribers } = createFakeHub()
  const stream = new FakeStream()
  const table = new Map<string, JobEvent>()
  const ends: string[] = []
  const reads: string[] = []
  const errors: unknown[] = []
  const line = ({ jobId, seq, kind, status, frame }: JobEvent): string =>
    [jobId, seq, kind, status, '', 'test', 'test.task', '', frame].join('\t')
  const open = (): (() => void) =>
    followAllJobs(hub, {
      includes: () => true,
      since,
      readLiveIds: async () => {
        reads.push('live')
        return [...table.keys()].filter((id) => !ends.includes(id))
      },
      readEndedPage: async ({ ms, jobId }) => {
        reads.push(`ended ${jobId ?? ms}`)
        const from = jobId === null ? 0 : ends.indexOf(jobId) + 1
        const ids = ends.slice(from, from + 2)
        // The n-th job ended at n seconds.
        return { ids, next: ids.length === 2 ? { ms: (from + 2) * 1000, jobId: ids[1]! } : null }
      },
      readStates: async (ids) => {
        reads.push(`${ids.length} states`)
        return ids.flatMap((id) => table.get(id) ?? []).map(line)
      },
      onError: (error) => errors.push(error),
      ...more,
    }).open(stream)
  const change = (changed: readonly JobEvent[]): void => {
    for (const state of changed) table.set(state.jobId, state)
    states.push(...changed)
    deliver()
  }
  return { hub, stream, table, ends, reads, errors, open, change, subscribers }
}

const waitForTurn = () => new Promise((resolve) => setImmediate(resolve))
const dataOf = (frames: readonly SseFrame[]) => frames.map(({ data }) => data)

test('for a slow subscriber to all jobs only ids are kept, and their latest states are read later', async () => {
  const { stream, reads, open, change } = subscribeToAll()
  open()
  await waitForTurn()
  change([createEvent(1, 'running', 'b')])
  assert.deepEqual([stream.sent.map(dataOf), reads], [[['{"n":1}']], ['live']], 'as notified')
  stream.writable = false
  for (let seq = 2; seq <= 1000; seq++)
    change(
      ['a', 'b', 'c'].map((job) => createEvent(seq, seq === 1000 && job === 'c' ? 'done' : 'running', job)),
    )
  await waitForTurn()
  assert.deepEqual([stream.sent.length, reads], [1, ['live']])
  stream.catchUp()
  await waitForTurn()
  assert.deepEqual(stream.sent.slice(1).map(dataOf), [['{"n":1000}', '{"n":1000}', '{"n":1000}']])
  assert.deepEqual(reads.slice(1), ['3 states'])
  change([createEvent(1001, 'running', 'a')])
  assert.deepEqual(stream.sent.slice(2).map(dataOf), [['{"n":1001}']], 'and is notified again')
})

test('a subscriber to all jobs gets pages at its own pace, without read-ahead', async () => {
  const { stream, table, reads, open } = subscribeToAll()
  const long = 'x'.repeat(2000)
  for (let n = 0; n < 1000; n++)
    table.set(`job ${n}`, { ...createEvent(n, 'running', `job ${n}`), frame: `[${n},"${long}"]` })
  stream.room = 2
  open()
  await waitForTurn()
  assert.deepEqual(reads, ['live', '32 states', '32 states'])
  assert.equal(stream.sent.length, 3)
  for (const part of stream.sent) assert.ok(part.length < 20, 'some 32 KB each')
  stream.catchUp()
  while (stream.sent.flat().length < 1000) await waitForTurn()
  assert.deepEqual(
    dataOf(stream.sent.flat()).map((text) => JSON.parse(text)[0]),
    Array.from({ length: 1000 }, (_, n) => n),
    'each once, in order',
  )
})

test('a slow subscriber with too many pending jobs continues as if it had reconnected', async () => {
  const { stream, ends, reads, open, change } = subscribeToAll()
  open()
  await waitForTurn()
  stream.writable = false
  const ids = Array.from({ length: 10_001 }, (_, n) => `job ${n}`)
  change(ids.map((id) => createEvent(1, 'running', id)))
  const last = ids.slice(-3)
  change(last.map((id) => createEvent(2, 'done', id)))
  ends.push(...last)
  stream.catchUp()
  while (stream.sent.flat().length < 10_001) await waitForTurn()
  assert.deepEqual(
    reads.filter((read) => !read.endsWith('states')).map((read) => read.replace(/\d{13}/, 'then')),
    ['live', 'live', 'ended then', `ended ${last[1]}`],
  )
  assert.equal(new Set(stream.sent.flat()).size, 10_001)
  assert.deepEqual(dataOf(stream.sent.flat()).filter((text) => text === '{"n":2}').length, 3)
})

test('a resumed stream gets all ends since its cursor, and changes meanwhile', async () => {
  const { stream, table, ends, reads, open, change } = subscribeToAll(1_005)
  for (let n = 0; n < 5; n++) table.set(`${n}`, createEvent(n + 10, 'done', `${n}`))
  ends.push(...table.keys())
  open()
  change([createEvent(1, 'queued', 'new')])
  await waitForTurn()
  await waitForTurn()
  assert.deepEqual(
    reads.filter((read) => !read.endsWith('states')),
    ['live', 'ended 1005', 'ended 1', 'ended 3'],
  )
  assert.deepEqual(
    dataOf(stream.sent.flat()).sort(),
    [10, 11, 12, 13, 14, 1].map((n) => `{"n":${n}}`),
  )
})

test('a client that disconnects early resumes from its last id, which is the last complete point', async () => {
  const { hub, stream, table, ends, open, change } = subscribeToAll(5)
  hub.knownUntil = 1_000_000
  for (let n = 0; n < 5; n++) {
    table.set(`${n}`, createEvent(n + 10, 'done', `${n}`))
    ends.push(`${n}`)
  }
  open()
  while (stream.sent.flat().length < 5) await waitForTurn()
  assert.deepEqual(idsOf(stream.sent.flat()), [5, 5, 2000, 2000, 4000])
  change([createEvent(1, 'running', 'a')])
  const now = idsOf(stream.sent.flat()).at(-1)!
  assert.equal(now, 1_000_000, 'of one that was sent all, the moment')
  stream.writable = false
  hub.knownUntil += 1
  change([createEvent(2, 'running', 'a')])
  hub.knownUntil += 20
  stream.catchUp()
  await waitForTurn()
  const later = idsOf(stream.sent.flat()).at(-1)!
  assert.equal(later, 1_000_001, 'of one that was slow, when it became so')
  change([createEvent(3, 'running', 'a')])
  assert.equal(idsOf(stream.sent.flat()).at(-1), 1_000_021)
})

test('a second overflow during the catch-up loses no ends', async () => {
  const { stream, table, ends, open, change } = subscribeToAll(5)
  const many = (from: string) => Array.from({ length: 10_001 }, (_, n) => `${from} ${n}`)
  const end = (id: string): void => {
    table.set(id, createEvent(2, 'done', id))
    ends.push(id)
  }
  end('a')
  // The page with this end is the last one, and waits until the subscriber is writable.
  stream.room = 0
  table.set('live', createEvent(1, 'running', 'live'))
  open()
  await waitForTurn()
  end('b')
  change(many('x').map((id) => createEvent(1, 'running', id)))
  stream.catchUp()
  while (stream.sent.flat().length < 10_004) await waitForTurn()
  assert.equal(dataOf(stream.sent.flat()).filter((text) => text === '{"n":2}').length, 2)
})

test('a failing stream of all jobs ends so that its client reconnects', async () => {
  const { stream, table, errors, open } = subscribeToAll()
  table.set('a', createEvent(1, 'running', 'a'))
  table.get = () => {
    throw new Error('no table')
  }
  open()
  await waitForTurn()
  assert.deepEqual([stream.closed, errors.length], [true, 1])
})

test('a stream of named jobs ends although one of them is deleted before its end was sent', async () => {
  for (const last of [{}, { last: 'a' }]) {
    const { stream, table, open, change } = subscribeToAll(null, { named: ['a'], ...last })
    open()
    await waitForTurn()
    stream.writable = false
    change([createEvent(1, 'done', 'a')])
    table.delete('a')
    stream.catchUp()
    await waitForTurn()
    assert.deepEqual([stream.sent.flat(), stream.closed], [[], true])
  }
})

test('the last job ends a stream only after the ends that were read since', async () => {
  const { stream, table, ends, open, change } = subscribeToAll(5, { named: ['batch'], last: 'batch' })
  open()
  await waitForTurn()
  for (const id of ['a', 'b', 'c']) {
    table.set(id, createEvent(2, 'done', id))
    ends.push(id)
  }
  change([createEvent(7, 'done', 'batch')])
  await until('the stream has ended', () => stream.closed)
  const frames = stream.sent.flat()
  assert.deepEqual(dataOf(frames), ['{"n":2}', '{"n":2}', '{"n":2}', '{"n":7}'])
  assert.equal(frames.at(-1)!.id, 'end')
})

test('a slow subscriber to all jobs that disconnects leaves nothing behind', async () => {
  const { stream, reads, open, change, subscribers } = subscribeToAll()
  const stop = open()
  await waitForTurn()
  stream.writable = false
  change([createEvent(1)])
  stream.closed = true
  stop()
  await waitForTurn()
  assert.deepEqual([subscribers(), reads], [0, ['live']])
})

test('40 MB of progress to a stalled client over a socket cost few MB, and the end arrives', async (t) => {
  const id = await ledger.add(owner)
  await ledger.claim(id)
  const socket = net.connect(api.port, '127.0.0.1')
  t.after(() => socket.destroy())
  socket.write(
    `GET /api/v1/jobs/${id}/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n\r\n`,
  )
  await until('the subscriber is connected', () => api.serving.edge.hub.watcherCount === 1)
  const label = 'x'.repeat(20_000)
  let events = 0
  const progress = (count: number) =>
    ledger.progressMany(
      id,
      Array.from({ length: count }, () => `${++events} ${label}`),
    )
  // Use small batches, so that each is delivered while it is new. Otherwise frames would be skipped for another reason.
  while (events < 2000 && api.serving.edge.hub.watcherCount > 0) {
    await progress(100)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  await until(
    'the edge no longer watches for the slow subscriber',
    () => api.serving.edge.hub.watcherCount === 0,
  )
  // Send the rest in one batch, because uWS closes a connection after 10 s without a read.
  await progress(2000 - events)
  await ledger.finish(id, 'done', { result: null })
  let received = 0
  let tail = ''
  const seen: number[] = []
  socket.setEncoding('latin1').on('data', (data: string) => {
    received += data.length
    const text = tail + data
    for (const [, n] of text.matchAll(/\nid: (\d+)\n/g))
      if (Number(n) > (seen.at(-1) ?? -1)) seen.push(Number(n))
    tail = text.slice(-40_000)
  })
  await until('the end', () => tail.includes('"status": "done"') || tail.includes('"status":"done"'))
  assert.ok(received < 30_000_000, `${received} bytes`)
  assert.ok(seen.length < events, `${seen.length} frames of ${events}`)
  assert.equal(seen.at(-1), events + 2, 'the terminal frame is the last')
})
