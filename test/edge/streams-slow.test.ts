import assert from 'node:assert/strict'
import net from 'node:net'
import { test } from 'node:test'
import { followEverything, followJob } from '../../edge/follow.ts'
import type { Hub, JobEvent } from '../../edge/hub.ts'
import type { SseFrame, SseStream } from '../../edge/sse.ts'
import { until } from '../until.ts'
import { edgeAndDatabase } from './harness.ts'
import { ledgerOf } from './ledger.ts'

/** Readers that do not keep up: they get the latest state, and nobody keeps a backlog for them. */

const { api, ...database } = await edgeAndDatabase()
const ledger = ledgerOf(database)
const { token, id: owner } = await api.register('owner@example.com')

/** A stream whose reader is as fast as the test says. */
class FakeStream implements SseStream {
  readonly sent: SseFrame[][] = []
  writable = true
  closed = false
  /** Writes that are taken before the reader is slow. */
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

/** A hub over a list of events; it delivers when asked to. */
function fakeHub(): {
  hub: Hub
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
    watchJob: (_: string, after: number, push: (events: readonly JobEvent[]) => void) => {
      const watcher = { after, push }
      watchers.add(watcher)
      return () => watchers.delete(watcher)
    },
    watchAll: (push: (states: readonly JobEvent[]) => void) => {
      everything.add(push)
      return () => everything.delete(push)
    },
  } as unknown as Hub
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

test('a slow reader of all jobs is kept one state for each', async () => {
  const { hub, states, deliver } = fakeHub()
  const stream = new FakeStream()
  followEverything(hub, { sees: () => true, now: async () => [], onError: assert.ifError }).open(stream)
  await Promise.resolve()
  stream.writable = false
  for (let seq = 1; seq <= 1000; seq++) {
    for (const job of ['a', 'b', 'c'])
      states.push(event(seq, seq === 1000 && job === 'c' ? 'done' : 'running', job))
    deliver()
  }
  assert.equal(stream.sent.length, 0)
  stream.catchUp()
  assert.deepEqual(
    stream.sent.map((frames) => frames.map(({ data }) => data)),
    [['{"n":1000}', '{"n":1000}', '{"n":1000}']],
  )
})

test('through a real socket: 40 MB of progress cost a reader who sleeps a few, and the end arrives', async (t) => {
  const id = await ledger.add(owner)
  await ledger.claim(id)
  const socket = net.connect(api.port, '127.0.0.1')
  t.after(() => socket.destroy())
  socket.write(`GET /api/v1/jobs/${id}/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`)
  await until('the reader is there', () => api.serving.edge.hub.watchers === 1)
  const label = 'x'.repeat(20_000)
  let events = 0
  for (let batch = 0; batch < 20; batch++) {
    await ledger.progressMany(
      id,
      Array.from({ length: 100 }, () => `${++events} ${label}`),
    )
    // Each batch is delivered while it is news, or it would be skipped for another reason.
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  await until('the reader is too slow to be watched for', () => api.serving.edge.hub.watchers === 0)
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
