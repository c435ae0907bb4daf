import assert from 'node:assert/strict'
import net from 'node:net'
import { test } from 'node:test'
import { followJob } from '../../edge/streams/follow.ts'
import { followAllJobs } from '../../edge/streams/follow-all.ts'
import type { Hub } from '../../edge/streams/hub.ts'
import type { JobEvent } from '../../edge/streams/job-event.ts'
import type { SseFrame, SseStream } from '../../edge/streams/sse.ts'
import { until } from '../until.ts'
import { edgeAndDatabase } from './harness.ts'
import { ledgerOf } from './ledger.ts'

/** Slow subscribers get the latest state; the edge keeps no backlog for them. */

const { api, ...database } = await edgeAndDatabase()
const ledger = ledgerOf(database)
const { token, id: owner } = await api.register('owner@example.com')

/** A stream whose subscriber reads at the pace that the test sets. */
class FakeStream implements SseStream {
  readonly sent: SseFrame[][] = []
  writable = true
  closed = false
  /** The number of writes until the subscriber is slow. */
  room = Number.POSITIVE_INFINITY
  private listener = (): void => {}

  send(frames: readonly SseFrame[]): boolean {
    this.sent.push([...frames])
    if (--this.room < 0) this.writable = false
    return this.writable
  }
  onWritable(listener: () => void): void {
    this.listener = listener
  }
  end(frames: readonly SseFrame[] = []): void {
    this.sent.push([...frames])
    this.closed = true
  }
  catchUp(): void {
    this.room = Number.POSITIVE_INFINITY
    this.writable = true
    this.listener()
  }
}

const event = (seq: number, status = 'running', jobId = 'a', kind = 'status'): JobEvent => ({
  jobId,
  seq,
  kind,
  status,
  ownerId: null,
  frame: `{"n":${seq}}`,
})

/** A hub over a list of events; it delivers on demand. */
function fakeHub(): {
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

const ids = (frames: readonly SseFrame[]) => frames.map(({ id }) => Number(id))

test('while a reader of one job is slow nothing is read or kept for it; then it gets the latest state only', () => {
  const { hub, events, deliver, subscribers } = fakeHub()
  const stream = new FakeStream()
  followJob(hub, event(0), null).open(stream)
  stream.room = 0
  for (let seq = 1; seq <= 1000; seq++) {
    events.push(event(seq))
    deliver()
  }
  assert.deepEqual(stream.sent.map(ids), [[0], [1]], 'the one that filled the pipe, and none behind it')
  assert.equal(subscribers(), 0)
  stream.catchUp()
  deliver()
  assert.deepEqual(stream.sent.slice(2).map(ids), [[1000]])
  events.push(event(1001), event(1002, 'done'))
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

test('frames that are no states are never left out, however slow the reader', () => {
  const { hub, events, deliver } = fakeHub()
  const stream = new FakeStream()
  followJob(hub, event(0), null).open(stream)
  stream.room = 0
  events.push(event(1))
  deliver()
  for (let seq = 2; seq <= 9; seq++)
    events.push(event(seq, seq % 2 ? 'running' : '', 'a', seq % 2 ? 'status' : 'chunk'))
  stream.catchUp()
  deliver()
  assert.deepEqual(ids(stream.sent.at(-1)!), [2, 4, 6, 8, 9])
})

test('a reader who is slow at the end still gets the terminal frame', () => {
  const { hub, events, deliver } = fakeHub()
  const stream = new FakeStream()
  followJob(hub, event(0), null).open(stream)
  stream.room = 0
  events.push(event(1))
  deliver()
  events.push(event(2), event(3, 'done'))
  deliver()
  assert.equal(stream.closed, false)
  stream.catchUp()
  deliver()
  assert.deepEqual([ids(stream.sent.at(-1)!), stream.closed], [[3], true])
})

test('events behind the terminal one are not sent', () => {
  const { hub, events, deliver } = fakeHub()
  const stream = new FakeStream()
  followJob(hub, event(0), null).open(stream)
  events.push(event(1), event(2, 'done'), event(3, 'done'), event(4))
  deliver()
  assert.deepEqual([stream.sent.flatMap(ids), stream.closed], [[0, 1, 2], true])
})

/** A subscriber to all jobs and a record of its table reads. All jobs in the table are live except those in `ends`. */
function readerOfAll(since: number | null = null) {
  const { hub, states, deliver, subscribers } = fakeHub()
  const stream = new FakeStream()
  const table = new Map<string, JobEvent>()
  const ends: string[] = []
  const reads: string[] = []
  const errors: unknown[] = []
  const line = ({ jobId, seq, kind, status, frame }: JobEvent): string =>
    [jobId, seq, kind, status, '', frame].join('\t')
  const open = (): (() => void) =>
    followAllJobs(hub, {
      sees: () => true,
      since,
      live: async () => {
        reads.push('live')
        return [...table.keys()].filter((id) => !ends.includes(id))
      },
      ended: async ({ ms, jobId }) => {
        reads.push(`ended ${jobId ?? ms}`)
        const from = jobId === null ? 0 : ends.indexOf(jobId) + 1
        const ids = ends.slice(from, from + 2)
        // The n-th job ended at n seconds.
        return { ids, next: ids.length === 2 ? { ms: (from + 2) * 1000, jobId: ids[1]! } : null }
      },
      states: async (ids) => {
        reads.push(`${ids.length} states`)
        return ids.flatMap((id) => table.get(id) ?? []).map(line)
      },
      onError: (error) => errors.push(error),
    }).open(stream)
  const change = (changed: readonly JobEvent[]): void => {
    for (const state of changed) table.set(state.jobId, state)
    states.push(...changed)
    deliver()
  }
  return { hub, stream, table, ends, reads, errors, open, change, subscribers }
}

const turns = () => new Promise((resolve) => setImmediate(resolve))
const data = (frames: readonly SseFrame[]) => frames.map(({ data }) => data)

test('of a slow reader of all jobs only their ids are kept: then their latest states are read', async () => {
  const { stream, reads, open, change } = readerOfAll()
  open()
  await turns()
  change([event(1, 'running', 'b')])
  assert.deepEqual([stream.sent.map(data), reads], [[['{"n":1}']], ['live']], 'as it was told')
  stream.writable = false
  for (let seq = 2; seq <= 1000; seq++)
    change(['a', 'b', 'c'].map((job) => event(seq, seq === 1000 && job === 'c' ? 'done' : 'running', job)))
  await turns()
  assert.deepEqual([stream.sent.length, reads], [1, ['live']])
  stream.catchUp()
  await turns()
  assert.deepEqual(stream.sent.slice(1).map(data), [['{"n":1000}', '{"n":1000}', '{"n":1000}']])
  assert.deepEqual(reads.slice(1), ['3 states'])
  change([event(1001, 'running', 'a')])
  assert.deepEqual(stream.sent.slice(2).map(data), [['{"n":1001}']], 'and it is told again')
})

test('a reader of all is sent parts for as long as it takes them, and nothing is read ahead', async () => {
  const { stream, table, reads, open } = readerOfAll()
  const long = 'x'.repeat(2000)
  for (let n = 0; n < 1000; n++)
    table.set(`job ${n}`, { ...event(n, 'running', `job ${n}`), frame: `[${n},"${long}"]` })
  stream.room = 2
  open()
  await turns()
  assert.deepEqual(reads, ['live', '32 states', '32 states'])
  assert.equal(stream.sent.length, 3)
  for (const part of stream.sent) assert.ok(part.length < 20, 'some 32 KB each')
  stream.catchUp()
  while (stream.sent.flat().length < 1000) await turns()
  assert.deepEqual(
    data(stream.sent.flat()).map((text) => JSON.parse(text)[0]),
    Array.from({ length: 1000 }, (_, n) => n),
    'each once, in order',
  )
})

test('more jobs than are kept for a slow reader: it is sent what it would be sent if it came back', async () => {
  const { stream, ends, reads, open, change } = readerOfAll()
  open()
  await turns()
  stream.writable = false
  const ids = Array.from({ length: 10_001 }, (_, n) => `job ${n}`)
  change(ids.map((id) => event(1, 'running', id)))
  const last = ids.slice(-3)
  change(last.map((id) => event(2, 'done', id)))
  ends.push(...last)
  stream.catchUp()
  while (stream.sent.flat().length < 10_001) await turns()
  assert.deepEqual(
    reads.filter((read) => !read.endsWith('states')).map((read) => read.replace(/\d{13}/, 'then')),
    ['live', 'live', 'ended then', `ended ${last[1]}`],
  )
  assert.equal(new Set(stream.sent.flat()).size, 10_001)
  assert.deepEqual(data(stream.sent.flat()).filter((text) => text === '{"n":2}').length, 3)
})

test('who comes back is sent all that has ended since, however many, and what changes meanwhile', async () => {
  const { stream, table, ends, reads, open, change } = readerOfAll(1_005)
  for (let n = 0; n < 5; n++) table.set(`${n}`, event(n + 10, 'done', `${n}`))
  ends.push(...table.keys())
  open()
  change([event(1, 'queued', 'new')])
  await turns()
  await turns()
  assert.deepEqual(
    reads.filter((read) => !read.endsWith('states')),
    ['live', 'ended 1005', 'ended 1', 'ended 3'],
  )
  assert.deepEqual(
    data(stream.sent.flat()).sort(),
    [10, 11, 12, 13, 14, 1].map((n) => `{"n":${n}}`),
  )
})

test('whoever leaves before it was sent all goes on, with the id it was sent last, where that was so', async () => {
  const { hub, stream, table, ends, open, change } = readerOfAll(5)
  hub.knownUntil = 1_000_000
  for (let n = 0; n < 5; n++) {
    table.set(`${n}`, event(n + 10, 'done', `${n}`))
    ends.push(`${n}`)
  }
  open()
  while (stream.sent.flat().length < 5) await turns()
  assert.deepEqual(ids(stream.sent.flat()), [5, 5, 2000, 2000, 4000])
  change([event(1, 'running', 'a')])
  const now = ids(stream.sent.flat()).at(-1)!
  assert.equal(now, 1_000_000, 'of one that was sent all, the moment')
  stream.writable = false
  hub.knownUntil += 1
  change([event(2, 'running', 'a')])
  hub.knownUntil += 20
  stream.catchUp()
  await turns()
  const later = ids(stream.sent.flat()).at(-1)!
  assert.equal(later, 1_000_001, 'of one that was slow, when it became so')
  change([event(3, 'running', 'a')])
  assert.equal(ids(stream.sent.flat()).at(-1), 1_000_021)
})

test('too many again while a reader catches up: what had been read of those that ended is no end of it', async () => {
  const { stream, table, ends, open, change } = readerOfAll(5)
  const many = (from: string) => Array.from({ length: 10_001 }, (_, n) => `${from} ${n}`)
  const end = (id: string): void => {
    table.set(id, event(2, 'done', id))
    ends.push(id)
  }
  end('a')
  // The page with this end is the last one and waits for the subscriber.
  stream.room = 0
  table.set('live', event(1, 'running', 'live'))
  open()
  await turns()
  end('b')
  change(many('x').map((id) => event(1, 'running', id)))
  stream.catchUp()
  while (stream.sent.flat().length < 10_004) await turns()
  assert.equal(data(stream.sent.flat()).filter((text) => text === '{"n":2}').length, 2)
})

test('a stream of all jobs that can not go on ends, for its reader to come back', async () => {
  const { stream, table, errors, open } = readerOfAll()
  table.set('a', event(1, 'running', 'a'))
  table.get = () => {
    throw new Error('no table')
  }
  open()
  await turns()
  assert.deepEqual([stream.closed, errors.length], [true, 1])
})

test('a reader of all who leaves while it is slow leaves nothing behind', async () => {
  const { stream, reads, open, change, subscribers } = readerOfAll()
  const stop = open()
  await turns()
  stream.writable = false
  change([event(1)])
  stream.closed = true
  stop()
  await turns()
  assert.deepEqual([subscribers(), reads], [0, ['live']])
})

test('through a real socket: 40 MB of progress cost a reader who sleeps a few, and the end arrives', async (t) => {
  const id = await ledger.add(owner)
  await ledger.claim(id)
  const socket = net.connect(api.port, '127.0.0.1')
  t.after(() => socket.destroy())
  socket.write(
    `GET /api/v1/jobs/${id}/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n\r\n`,
  )
  await until('the reader is there', () => api.serving.edge.hub.watcherCount === 1)
  const label = 'x'.repeat(20_000)
  let events = 0
  const progress = (count: number) =>
    ledger.progressMany(
      id,
      Array.from({ length: count }, () => `${++events} ${label}`),
    )
  // Small batches: each is delivered while it is new; otherwise frames would be skipped for another reason.
  while (events < 2000 && api.serving.edge.hub.watcherCount > 0) {
    await progress(100)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  await until('the reader is too slow to be watched for', () => api.serving.edge.hub.watcherCount === 0)
  // All the rest in one batch: uWS closes a connection after 10 s without a read.
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
