import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { type Frame, Stream } from './service.ts'

/** Readers of answers who lose their streams, and come back. */

export interface Listening {
  /** Where edges answer now. */
  readonly ports: () => readonly number[]
  readonly message: string
  /** The Idempotency-Key: a question whose answer did not come is asked again under it. */
  readonly key: string
  /** From 0 to 1. */
  readonly random: () => number
  /** The chance that a stream is dropped by its reader, at each look. */
  readonly drop: number
  /** How long an answer may take, in ms. */
  readonly limitMs?: number
  /** When to stop the turn, by the frames that have come. */
  readonly stopWhen?: (frames: readonly Frame[]) => boolean
  /** An account's; without one it is nobody's turn, which only admins may stop. */
  readonly token?: string
}

export interface Heard {
  readonly frames: readonly Frame[]
  /** How often the stream was opened. */
  readonly opened: number
}

const LOOK_MS = 15
const LIMIT_MS = 90_000
const CHAT = '/api/v1/ai/chat'

/** Reads an answer to its end, however often that takes. */
export async function hear(listening: Listening): Promise<Heard> {
  const { ports, random } = listening
  const frames: Frame[] = []
  const end = Date.now() + (listening.limitMs ?? LIMIT_MS)
  let stopping = false
  for (let opened = 1; ; opened++) {
    assert.ok(Date.now() < end, `no end after ${opened} streams, the last at ${frames.at(-1)?.id}`)
    const all = ports()
    const port = all[Math.floor(random() * all.length)]
    const stream = port === undefined ? null : await open(port, listening, frames)
    if (stream === 'nothing more') return { frames, opened }
    if (stream === null) {
      await delay(LOOK_MS)
      continue
    }
    while (!stream.ended) {
      await delay(LOOK_MS)
      if (random() < listening.drop) break
      if (!stopping && listening.stopWhen?.([...frames, ...stream.frames]) === true) {
        const { job_id } = (frames[0] ?? stream.frames[0])!.data
        stopping = await fetch(`http://127.0.0.1:${port}/api/v1/jobs/${job_id}`, {
          method: 'DELETE',
          headers: credentials(listening),
        }).then(
          ({ status }) => status === 202,
          () => false,
        )
      }
    }
    stream.close()
    frames.push(...stream.frames)
    if (['complete', 'error'].includes(frames.at(-1)?.event ?? '')) return { frames, opened }
  }
}

const credentials = ({ token }: Listening): Record<string, string> =>
  token === undefined ? {} : { authorization: `Bearer ${token}` }

/** Null when it could not be opened now. */
async function open(
  port: number,
  listening: Listening,
  frames: readonly Frame[],
): Promise<Stream | 'nothing more' | null> {
  const { message, key } = listening
  const abort = new AbortController()
  const base = `http://127.0.0.1:${port}${CHAT}/stream`
  const [first] = frames
  const response = await (first === undefined
    ? fetch(base, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'idempotency-key': key, ...credentials(listening) },
        body: JSON.stringify({ message }),
        signal: abort.signal,
      })
    : fetch(`${base}/${first.data.message_id}`, {
        headers: { 'last-event-id': frames.at(-1)!.id, ...credentials(listening) },
        signal: abort.signal,
      })
  ).catch(() => null)
  if (response?.status === 204) return 'nothing more'
  if (response?.status === 200) return new Stream(response, abort)
  // A question that is being asked by a process that was killed, or a process that is about to go.
  if (response !== null) assert.ok([409, 500, 503].includes(response.status), await response.text())
  return null
}

type Ask = (text: string, values?: readonly unknown[]) => Promise<Record<string, unknown>[]>

export interface Checked {
  readonly status: string
  readonly attempts: number
}

/**
 * What a reader has seen is what the ledger holds, each event once and none left out; what they have put together is what
 * is stored. @throws AssertionError
 */
export async function assertHeard(query: Ask, { frames }: Heard): Promise<Checked> {
  const { message_id, job_id } = frames[0]!.data
  const [row] = await query(
    `select m.status, m.content, job.status as job_status, job.attempt, job.seq from ai_message m join job on job.id = m.job_id
     where m.id = $1`,
    [message_id],
  )
  const seen = frames.map(({ id }) => Number(id.split('.')[1]))
  const events = await query(
    `select seq, kind from job_event where job_id = $1 and kind in ('chunk', 'restart') order by seq`,
    [job_id],
  )
  const end = Number(row!.seq)
  const ends = row!.status === 'complete' ? [end, end + 1] : [end]
  assert.deepEqual(seen, [0, ...events.map(({ seq }) => Number(seq)), ...ends], 'no gap, no repeat')
  const from = frames.findLastIndex(({ event }) => event === 'restart')
  const text = frames
    .slice(from + 1)
    .filter(({ event }) => event === 'chunk')
    .map(({ data }) => data.content)
    .join('')
  assert.equal(text, row!.content, 'what was put together is what is stored')
  if (row!.status === 'complete') assert.equal(frames.at(-2)!.data.content, text)
  const restarts = frames.filter(({ event }) => event === 'restart').length
  assert.ok(restarts < Number(row!.attempt), 'a new beginning is a new attempt')
  return { status: String(row!.status), attempts: Number(row!.attempt) }
}
