import { connect } from 'node:net'
import { percentile } from '../stats.ts'

/** Chat clients in a separate process. They start `perSecond` answer streams a second and record when pieces arrive. */

export interface TalkOrder {
  readonly port: number
  /** The complete text of a request. */
  readonly request: string
  readonly streams: number
  readonly perSecond: number
  /** Number of pieces of each answer. */
  readonly pieces: number
}

export interface TalkResult {
  readonly streams: number
  /** Number of streams that ended without all their pieces or in an unexpected way. */
  readonly broken: number
  readonly first: Percentiles
  readonly piece: Percentiles
  /** Time from the question to the end of the answer. */
  readonly whole: Percentiles
}

export interface Percentiles {
  readonly p50: number
  readonly p95: number
  readonly p99: number
}

const now = (): number => performance.timeOrigin + performance.now()
const LIMIT_MS = 60_000
const PIECE = /(\d{13}\.\d\d)\/(\d{13}\.\d\d) /g

process.on('message', (talk: TalkOrder) => {
  void runTalk(talk).then((heard) => process.send!(heard))
})
process.on('disconnect', () => process.exit())
process.send!({})

async function runTalk(talk: TalkOrder): Promise<TalkResult> {
  const first: number[] = []
  const piece: number[] = []
  const whole: number[] = []
  let broken = 0
  const pause = 1000 / talk.perSecond
  const beganAt = now()
  const all: Promise<void>[] = []
  for (let i = 0; i < talk.streams; i++) {
    const wait = beganAt + i * pause - now()
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait))
    all.push(
      readStream(talk.port, talk.request, talk.pieces).then((one) => {
        if (one === null) return void broken++
        first.push(one.first)
        piece.push(...one.pieces)
        whole.push(one.whole)
      }),
    )
  }
  await Promise.all(all)
  const spread = (values: number[]): Percentiles => ({
    p50: percentile(values, 0.5),
    p95: percentile(values, 0.95),
    p99: percentile(values, 0.99),
  })
  return { streams: talk.streams, broken, first: spread(first), piece: spread(piece), whole: spread(whole) }
}

interface StreamTimes {
  readonly first: number
  readonly pieces: readonly number[]
  readonly whole: number
}

/** Reads one stream and returns its times; null if the stream was incomplete. */
function readStream(port: number, request: string, pieces: number): Promise<StreamTimes | null> {
  return new Promise((resolve) => {
    const sentAt = now()
    const socket = connect({ host: '127.0.0.1', port, noDelay: true }, () => socket.write(request))
    const delays: number[] = []
    let first = -1
    let rest = ''
    const limit = setTimeout(() => socket.destroy(), LIMIT_MS)
    const end = (): void => {
      clearTimeout(limit)
      socket.destroy()
      resolve(delays.length === pieces ? { first, pieces: delays, whole: now() - sentAt } : null)
    }
    socket.on('error', end).on('close', end)
    socket.on('data', (data) => {
      const at = now()
      rest += data.toString('latin1')
      // Skip the final event, which repeats the whole answer.
      const last = rest.indexOf('event: final')
      const news = last === -1 ? rest : rest.slice(0, last)
      let seen = 0
      for (const match of news.matchAll(PIECE)) {
        const [cameAt, leftAt] = [Number(match[1]), Number(match[2])]
        if (first < 0) first = at - sentAt - (leftAt - cameAt)
        delays.push(at - leftAt)
        seen = match.index + match[0].length
      }
      rest = last === -1 ? rest.slice(seen) : ''
      if (last !== -1 || rest.includes('[DONE]')) end()
    })
  })
}
