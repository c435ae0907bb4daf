import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { getAwakeMs } from './awake.ts'
import { type Frame, Stream } from './service.ts'

/** Simulates clients that read chat answers, lose their streams and reconnect. */

export interface ReadOptions {
  /** Returns the ports of the running edges. */
  readonly ports: () => readonly number[]
  readonly message: string
  /** The Idempotency-Key under which an unanswered question is retried. */
  readonly key: string
  /** Returns a random number from 0 to 1. */
  readonly random: () => number
  /** Probability that the reader drops its stream at each poll. */
  readonly dropProbability: number
  /** Maximum time for the answer, in ms. */
  readonly limitMs?: number
  /** Returns true if the turn should be cancelled, given the frames so far. */
  readonly stopWhen?: (frames: readonly Frame[]) => boolean
  /** Access token. Without one the turn has no owner, and only admins may cancel it. */
  readonly token?: string
}

export interface AnswerRead {
  readonly frames: readonly Frame[]
  /** Number of streams opened. */
  readonly streamCount: number
}

const POLL_INTERVAL_MS = 15
const ANSWER_TIMEOUT_MS = 90_000
const CHAT_PATH = '/api/v1/ai/chat'

/** Reads an answer to its end, over as many streams as necessary. */
export async function readAnswer(listening: ReadOptions): Promise<AnswerRead> {
  const { ports, random } = listening
  const frames: Frame[] = []
  const end = getAwakeMs() + (listening.limitMs ?? ANSWER_TIMEOUT_MS)
  let stopping = false
  for (let opened = 1; ; opened++) {
    assert.ok(getAwakeMs() < end, `no end after ${opened} streams, the last at ${frames.at(-1)?.id}`)
    const all = ports()
    const port = all[Math.floor(random() * all.length)]
    const stream = port === undefined ? null : await openStream(port, listening, frames)
    if (stream === 'nothing more') return { frames, streamCount: opened }
    if (stream === null) {
      await delay(POLL_INTERVAL_MS)
      continue
    }
    while (!stream.ended) {
      await delay(POLL_INTERVAL_MS)
      if (random() < listening.dropProbability) break
      if (!stopping && listening.stopWhen?.([...frames, ...stream.frames]) === true) {
        const { job_id } = (frames[0] ?? stream.frames[0])!.data
        stopping = await fetch(`http://127.0.0.1:${port}/api/v1/jobs/${job_id}`, {
          method: 'DELETE',
          headers: createAuthHeaders(listening),
        }).then(
          ({ status }) => status === 202,
          () => false,
        )
      }
    }
    stream.close()
    frames.push(...stream.frames)
    if (['complete', 'error'].includes(frames.at(-1)?.event ?? '')) return { frames, streamCount: opened }
  }
}

const createAuthHeaders = ({ token }: ReadOptions): Record<string, string> =>
  token === undefined ? {} : { authorization: `Bearer ${token}` }

/** Opens a stream. Returns null after a transient failure, and 'nothing more' if the server has no further frames. */
async function openStream(
  port: number,
  listening: ReadOptions,
  frames: readonly Frame[],
): Promise<Stream | 'nothing more' | null> {
  const { message, key } = listening
  const abort = new AbortController()
  const base = `http://127.0.0.1:${port}${CHAT_PATH}/stream`
  const [first] = frames
  const response = await (first === undefined
    ? fetch(base, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'idempotency-key': key,
          ...createAuthHeaders(listening),
        },
        body: JSON.stringify({ message }),
        signal: abort.signal,
      })
    : fetch(`${base}/${first.data.message_id}`, {
        headers: { 'last-event-id': frames.at(-1)!.id, ...createAuthHeaders(listening) },
        signal: abort.signal,
      })
  ).catch(() => null)
  if (response?.status === 204) return 'nothing more'
  if (response?.status === 200) return new Stream(response, abort)
  // 409 means that a killed process still holds the question's key. 500 and 503 mean that the process is shutting down.
  if (response !== null) assert.ok([409, 500, 503].includes(response.status), await response.text())
  return null
}

type RunQuery = (text: string, values?: readonly unknown[]) => Promise<Record<string, unknown>[]>

export interface CheckedAnswer {
  readonly status: string
  readonly attempts: number
}

/**
 * Asserts that the reader saw each event of the ledger exactly once, and that its chunks add up to the stored answer.
 */
export async function assertAnswerRead(query: RunQuery, { frames }: AnswerRead): Promise<CheckedAnswer> {
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
