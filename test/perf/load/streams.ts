import { connect, type Socket } from 'node:net'
import { constants, setPriority } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { percentile } from '../stats.ts'
import { FrameReader, type SeenFrame } from './frames.ts'
import { formatRequest } from './load.ts'

/** Readers of event streams in a separate process. They use raw sockets and check for missing frames. */

export interface OpenStreams {
  /** Ports of the edges. Stream n uses the port at index n modulo their number. */
  readonly ports: readonly number[]
  readonly token: string
  /** The job of each stream. */
  readonly jobIds: readonly string[]
}

/** Cuts `perSecond` random streams a second, which reconnect with `Last-Event-ID`. */
export interface Storm {
  readonly perSecond: number
  readonly seconds: number
}

/** Opens `ofAll` streams of all jobs. */
export interface OpenAllJobsStreams {
  readonly port: number
  readonly token: string
  readonly ofAll: number
  /** True to stop reading after the first frame. */
  readonly asleep: boolean
}

export type StreamsOrder = OpenStreams | Storm | OpenAllJobsStreams | 'close of all' | 'close' | 'report'

export interface StreamsSeen {
  readonly frames: number
  /** Number of frames out of order: with a number that is not the next one, or a label older than the previous one. */
  readonly gaps: number
  /** Number of streams whose last frame was terminal and that the server then ended. */
  readonly finished: number
  /** Number of frames that arrived after a terminal frame. */
  readonly after: number
  readonly broken: number
  readonly reconnects: number
  /** Delay of progress events from the publisher to the reader. */
  readonly delayMs: { readonly p50: number; readonly p95: number; readonly p99: number }
  /** Number of the last frame of each stream. */
  readonly last: readonly number[]
}

interface Stream {
  readonly port: number
  readonly token: string
  readonly jobId: string
  socket: Socket
  last: number
  label: number
  terminal: boolean
  closed: boolean
}

// Number of simultaneous connects that fit into the server's backlog.
const CONCURRENT_CONNECTS = 50
const TICK_MS = 20

// Production readers run on other machines. Here, low priority makes the readers wait rather than the server.
setPriority(constants.priority.PRIORITY_LOW)

let streams: Stream[] = []
let ofAll: Socket[] = []
let count = 0
let gaps = 0
let after = 0
let broken = 0
let reconnects = 0
let delays: number[] = []

process.on('message', (order: StreamsOrder) => {
  void runOrder(order).then((answer) => process.send!(answer))
})
process.on('disconnect', () => process.exit())
process.send!({})

async function runOrder(order: StreamsOrder): Promise<object> {
  if (order === 'report') return report()
  if (order === 'close') closeAll()
  else if (order === 'close of all') closeAllJobsStreams()
  else if ('perSecond' in order) await runStorm(order)
  else if ('ofAll' in order) await openAllJobsStreams(order)
  else await openAll(order)
  return {}
}

async function openAll({ ports, token, jobIds }: OpenStreams): Promise<void> {
  const from = streams.length
  const waiting = jobIds.entries()
  const open = async (): Promise<void> => {
    for (const [i, jobId] of waiting) {
      const port = ports[i % ports.length]!
      const stream = { port, token, jobId, last: -1, label: 0, terminal: false, closed: false } as Stream
      streams[from + i] = stream
      await connectStream(stream)
    }
  }
  await Promise.all(Array.from({ length: CONCURRENT_CONNECTS }, open))
}

/** Connects a stream, and resumes after its last frame if it has one. Resolves at the first frame or the end. */
function connectStream(stream: Stream): Promise<void> {
  const socket = connect({ host: '127.0.0.1', port: stream.port, noDelay: true })
  const frames = new FrameReader()
  const request = formatRequest('GET', `/api/v1/jobs/${stream.jobId}/events`, stream.token)
  stream.socket = socket
  stream.closed = false
  socket.write(
    stream.last < 0 ? request : request.replace('\r\n\r\n', `\r\nlast-event-id: ${stream.last}\r\n\r\n`),
  )
  return new Promise((resolve) => {
    socket.on('error', () => {
      broken++
    })
    socket.on('close', () => {
      if (stream.socket === socket) stream.closed = true
      resolve()
    })
    socket.on('data', (chunk) => {
      // Ignore data that arrives after the stream was cut.
      if (stream.socket !== socket || socket.destroyed) return
      const text = chunk.toString('latin1')
      if (text.startsWith('HTTP/1.1 204')) socket.end()
      for (const frame of frames.feed(text)) recordFrame(stream, frame)
      resolve()
    })
  })
}

function recordFrame(stream: Stream, { event, id, data }: SeenFrame): void {
  const seq = Number(id)
  if (stream.terminal) after++
  if (stream.last >= 0 && seq !== stream.last + 1) gaps++
  stream.last = seq
  count++
  if (event !== 'status') return
  const { status, label } = JSON.parse(data) as { status: string; label?: string }
  if (status === 'done') {
    stream.terminal = true
    // The response has ended. Close its keep-alive connection, which is not used again.
    stream.socket.end()
  } else if (label !== undefined && label !== '') {
    const at = Number.parseInt(label, 10)
    if (at < stream.label) gaps++
    stream.label = at
    delays.push(Date.now() - stream.label)
  }
}

async function runStorm({ perSecond, seconds }: Storm): Promise<void> {
  const coming: Promise<void>[] = []
  for (let tick = 0; tick < (seconds * 1000) / TICK_MS; tick++) {
    for (let i = 0; i < (perSecond * TICK_MS) / 1000; i++) {
      const stream = streams[Math.floor(Math.random() * streams.length)]!
      stream.socket.destroy()
      reconnects++
      coming.push(connectStream(stream))
    }
    await delay(TICK_MS)
  }
  // Do not wait for streams without events or those that were cut again: they may send no frame.
  await Promise.race([Promise.all(coming), delay(1000)])
}

async function openAllJobsStreams({ port, token, ofAll: wanted, asleep }: OpenAllJobsStreams): Promise<void> {
  for (let i = 0; i < wanted; i++) {
    const socket = connect({ host: '127.0.0.1', port, noDelay: true })
    socket.on('error', () => {
      broken++
    })
    socket.write(formatRequest('GET', '/api/v1/jobs/events', token))
    await new Promise((resolve) => socket.once('data', resolve))
    if (asleep) socket.pause()
    else socket.resume()
    ofAll.push(socket)
  }
}

function closeAllJobsStreams(): void {
  for (const socket of ofAll) socket.destroy()
  ofAll = []
}

function closeAll(): void {
  for (const { socket } of streams) socket.destroy()
  closeAllJobsStreams()
  streams = []
  count = 0
  gaps = 0
  after = 0
  broken = 0
  reconnects = 0
  delays = []
}

function report(): StreamsSeen {
  return {
    frames: count,
    gaps,
    after,
    broken,
    reconnects,
    finished: streams.filter(({ terminal, closed }) => terminal && closed).length,
    delayMs: { p50: percentile(delays, 0.5), p95: percentile(delays, 0.95), p99: percentile(delays, 0.99) },
    last: streams.map(({ last }) => last),
  }
}
