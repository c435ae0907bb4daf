import { connect, type Socket } from 'node:net'
import { percentile } from '../stats.ts'
import { FrameReader, type SeenFrame } from './frames.ts'
import { requestText } from './load.ts'

/** Readers of event streams, in a process of their own: raw sockets, each checking that no frame is missing. */

export interface OpenStreams {
  readonly port: number
  readonly token: string
  /** Which job each stream follows. */
  readonly jobIds: readonly string[]
}

export interface StreamsSeen {
  readonly frames: number
  /** Frames that did not follow the one before by exactly one. */
  readonly gaps: number
  /** Streams whose last frame was terminal, and that the server ended then. */
  readonly finished: number
  readonly broken: number
  /** From the publisher's clock to this one's. */
  readonly delayMs: { readonly p50: number; readonly p95: number; readonly p99: number }
  /** The number of the last frame, by stream. */
  readonly last: readonly number[]
}

interface Stream {
  readonly socket: Socket
  readonly frames: FrameReader
  last: number
  terminal: boolean
  closed: boolean
}

// Opened at once, so that the server's backlog holds them.
const ABREAST = 50

let streams: Stream[] = []
let count = 0
let gaps = 0
let broken = 0
let delays: number[] = []

process.on('message', (message: OpenStreams | 'close' | 'report') => {
  if (message === 'report') process.send!(report())
  else if (message === 'close') void closeAll().then(() => process.send!({}))
  else void openAll(message).then(() => process.send!({}))
})
process.on('disconnect', () => process.exit())
process.send!({})

async function openAll({ port, token, jobIds }: OpenStreams): Promise<void> {
  const waiting = jobIds.values()
  const open = async (): Promise<void> => {
    for (const jobId of waiting)
      await openOne(port, requestText('GET', `/api/v1/jobs/${jobId}/events`, token))
  }
  await Promise.all(Array.from({ length: ABREAST }, open))
}

/** Resolves with the first frame. */
function openOne(port: number, request: string): Promise<void> {
  const socket = connect({ host: '127.0.0.1', port, noDelay: true })
  const stream: Stream = { socket, frames: new FrameReader(), last: -1, terminal: false, closed: false }
  streams.push(stream)
  socket.write(request)
  socket.on('error', () => {
    broken++
  })
  socket.on('close', () => {
    stream.closed = true
  })
  return new Promise((resolve, reject) => {
    socket.once('close', () => reject(new Error('A stream was closed before its first frame')))
    socket.on('data', (chunk) => {
      for (const frame of stream.frames.feed(chunk.toString('latin1'))) take(stream, frame)
      if (stream.last >= 0) resolve()
    })
  })
}

function take(stream: Stream, { event, id, data }: SeenFrame): void {
  const seq = Number(id)
  if (stream.last >= 0 && seq !== stream.last + 1) gaps++
  stream.last = seq
  count++
  if (event !== 'status') return
  const { status, label } = JSON.parse(data) as { status: string; label?: string }
  if (status === 'done') {
    stream.terminal = true
    // The response has ended; the connection is kept alive for a next request, which will not come.
    stream.socket.end()
  } else if (label !== undefined && label !== '') delays.push(Date.now() - Number(label))
}

async function closeAll(): Promise<void> {
  for (const { socket } of streams) socket.destroy()
  streams = []
  count = 0
  gaps = 0
  broken = 0
  delays = []
}

function report(): StreamsSeen {
  return {
    frames: count,
    gaps,
    broken,
    finished: streams.filter(({ terminal, closed }) => terminal && closed).length,
    delayMs: { p50: percentile(delays, 0.5), p95: percentile(delays, 0.95), p99: percentile(delays, 0.99) },
    last: streams.map(({ last }) => last),
  }
}
