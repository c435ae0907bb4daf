import type { TurnState } from '../../../sql/ai/turns.ts'
import { type Failure, fail } from '../../../sql/errors.ts'
import { ChatResult } from '../../../tasks/ai/chat.task.ts'
import { toJobFailure } from '../../pipeline/answer/responders.ts'
import type { Hub } from '../../streams/hub.ts'
import { isTerminal, type JobEvent } from '../../streams/job-event.ts'
import { encodeFrame, type SseFrame, type SseStream, type StreamSource } from '../../streams/sse.ts'

/**
 * Streams a turn as `connect`, a `chunk` for each piece, then `final` with the full answer and `complete`, or `error`.
 * A `restart` voids all earlier chunks. An event id consists of the answer's id and the number of the job's event. It
 * suffices to resume the stream on every path.
 */

/** Position of a client: the answer, and the last event that the client has received. */
export interface StreamPosition {
  readonly messageId: string
  readonly seq: number
}

const POSITION_FORMAT = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.(\d{1,9})$/

/** Parses a Last-Event-ID; null if it has another format. */
export function parsePosition(lastEventId: string): StreamPosition | null {
  const [, messageId, seq] = POSITION_FORMAT.exec(lastEventId) ?? []
  return messageId === undefined ? null : { messageId, seq: Number(seq) }
}

// Event number of `final` in turns whose job is pruned. It exceeds the numbers of all real events.
const STORED_FINAL_SEQ = 900_000_000

/** Streams the events of a turn that follow number `after`; null means all events. */
export function followTurn(hub: Hub, turn: TurnState, after: number | null): StreamSource {
  const { seq, job_id: jobId } = turn
  if (seq === null || jobId === null) return streamStoredTurn(turn, after)
  // Numbers of future events are ignored, because waiting for them could take forever.
  const last = after !== null && after > seq + 1 ? null : after
  if (turn.ended === true && last !== null && last >= seq) {
    if (turn.status !== 'complete' || last > seq) return 'ended'
    return { open: (stream) => sendAndEnd(stream, [buildCompleteFrame(turn, seq)]) }
  }
  return { open: (stream) => followJob(hub, turn, { jobId, last, stream }) }
}

interface JobFollow {
  readonly jobId: string
  /** Number of the last event that the client has; null for none. */
  readonly last: number | null
  readonly stream: SseStream
}

function followJob(hub: Hub, turn: TurnState, { jobId, last, stream }: JobFollow): () => void {
  let cursor = last ?? 0
  let stop = (): void => {}
  const push = (events: readonly JobEvent[]): void => {
    if (stream.closed) return
    const frames: SseFrame[] = []
    for (const event of events) {
      cursor = event.seq
      frames.push(...toFrames(turn, event))
      if (!isTerminal(event)) continue
      stop()
      stream.end(frames)
      return
    }
    if (frames.length > 0 && !stream.send(frames)) stop()
  }
  if (last === null) stream.send([buildConnectFrame(turn)])
  stop = hub.watchJob(jobId, cursor, push)
  // Start a new watch, which first reads the events that backpressure has skipped from the table.
  stream.onWritable(() => {
    stop()
    stop = hub.watchJob(jobId, cursor, push)
  })
  return () => stop()
}

/** Streams the stored answer of a turn whose job is pruned. */
function streamStoredTurn(turn: TurnState, after: number | null): StreamSource {
  if (after !== null && after >= STORED_FINAL_SEQ + 1) return 'ended'
  const frames = after === null ? [buildConnectFrame(turn)] : []
  if (turn.status === 'complete') {
    const { message_id, conversation_id, content, provider, model } = turn
    const response_time_ms = turn.response_time_ms ?? 0
    const timestamp = turn.settled_at ?? ''
    const result = {
      ...{ message_id, conversation_id, content, response_time_ms, provider, model, timestamp },
      finish_reason: ChatResult.shape.finish_reason.catch('other').parse(turn.finish_reason),
      ...(turn.reasoning === null ? {} : { reasoning: turn.reasoning }),
      ...(turn.tool_calls === null ? {} : { tool_calls: turn.tool_calls }),
      ...(turn.rag_sources === null ? {} : { rag_sources: turn.rag_sources }),
    }
    frames.push(buildFinalFrame(turn, STORED_FINAL_SEQ, result), buildCompleteFrame(turn, STORED_FINAL_SEQ))
  } else frames.push(buildErrorFrame(turn, STORED_FINAL_SEQ + 1, toStoredFailure(turn)))
  return { open: (stream) => sendAndEnd(stream, frames) }
}

function sendAndEnd(stream: SseStream, frames: readonly SseFrame[]): () => void {
  stream.end(frames)
  return () => {}
}

function toFrames(turn: TurnState, event: JobEvent): SseFrame[] {
  const { seq, kind } = event
  const { message_id, conversation_id } = turn
  if (kind === 'chunk') {
    const { content, timestamp } = JSON.parse(event.frame) as { content: string; timestamp: string }
    const data = { content, is_final: false, is_delta: true, message_id, conversation_id, timestamp }
    return [buildFrame(turn, 'chunk', seq, data)]
  }
  if (kind === 'tool_call')
    return [buildFrame(turn, 'tool_call', seq, { ...JSON.parse(event.frame), message_id, conversation_id })]
  if (kind === 'restart') {
    const { timestamp } = JSON.parse(event.frame) as { timestamp: string }
    return [buildFrame(turn, 'restart', seq, { message_id, conversation_id, timestamp })]
  }
  if (!isTerminal(event)) return []
  if (event.status === 'cancelled') return [buildErrorFrame(turn, seq, fail('turn.stopped'))]
  if (event.status === 'failed') return [buildErrorFrame(turn, seq, toJobFailure(event))]
  const { result } = JSON.parse(event.frame) as { result: ChatResult }
  return [buildFinalFrame(turn, seq, result), buildCompleteFrame(turn, seq)]
}

function buildFrame({ message_id }: TurnState, event: string, seq: number, data: object): SseFrame {
  return { event, id: `${message_id}.${seq}`, data: JSON.stringify(data) }
}

/** Returns the failure of a turn whose job is pruned. Its row has the detail but not the code. */
function toStoredFailure({ error_detail }: TurnState): Pick<Failure, 'code' | 'detail'> {
  return error_detail === null ? fail('turn.stopped') : { code: 'turn.failed', detail: error_detail }
}

function buildErrorFrame(
  turn: TurnState,
  seq: number,
  {
    code,
    detail,
    retryAfter,
  }: Pick<Failure, 'code' | 'detail'> & { readonly retryAfter?: number | undefined },
): SseFrame {
  return buildFrame(turn, 'error', seq, {
    ...{ detail, code },
    ...(retryAfter === undefined ? {} : { retry_after: retryAfter }),
  })
}

function buildConnectFrame(turn: TurnState): SseFrame {
  const { conversation_id, message_id, job_id } = turn
  return buildFrame(turn, 'connect', 0, { conversation_id, message_id, job_id })
}

/** The result of a turn; without usage once the job is pruned. */
type StoredResult = Omit<ChatResult, 'usage'> & Partial<Pick<ChatResult, 'usage'>>

function buildFinalFrame(turn: TurnState, seq: number, result: StoredResult): SseFrame {
  const { content, message_id, conversation_id, timestamp, response_time_ms, provider, model } = result
  return buildFrame(turn, 'final', seq, {
    content,
    is_final: true,
    is_delta: false,
    message_id,
    conversation_id,
    timestamp,
    response_time_ms,
    provider,
    model,
    finish_reason: result.finish_reason,
    ...(result.reasoning === undefined ? {} : { reasoning: result.reasoning }),
    ...(result.tool_calls === undefined ? {} : { tool_calls: result.tool_calls }),
    ...(result.usage === undefined ? {} : { usage: result.usage }),
    ...(result.rag_sources === undefined ? {} : { rag_sources: result.rag_sources }),
  })
}

function buildCompleteFrame(turn: TurnState, seq: number): SseFrame {
  return buildFrame(turn, 'complete', seq + 1, { status: 'completed' })
}

/** Returns a short stream for the API reference, built with the code of real streams. */
export function buildExampleStream(): string {
  const turn: TurnState = {
    message_id: '01a20118-fbcc-738c-80ed-00058e0e401d',
    conversation_id: '01a20118-fb9f-7aa1-9d1c-0a3c51b27b1e',
    user_id: 'api-user',
    owner_id: null,
    job_id: '01a20118-fbd0-7c55-b1f2-3d9a8c0e7f66',
    status: 'pending',
    content: '',
    tool_calls: null,
    provider: 'openai',
    model: 'gpt-4o-mini',
    response_time_ms: null,
    finish_reason: null,
    reasoning: null,
    rag_sources: null,
    error_detail: null,
    settled_at: null,
    seq: 5,
    ended: false,
  }
  const { message_id, conversation_id, provider, model } = turn
  const jobId = turn.job_id!
  const timestamp = '2026-03-01T09:30:00.000Z'
  const content = 'It was a good year.'
  const event = (seq: number, kind: string, data: object): JobEvent => {
    const job = { jobId, ownerId: null, queue: 'ai', task: 'ai.chat', batchId: null }
    return { ...job, seq, kind, status: 'done', frame: JSON.stringify(data) }
  }
  const result = {
    ...{ message_id, conversation_id, content, response_time_ms: 840, provider, model, timestamp },
    finish_reason: 'stop',
  }
  const events = [
    event(3, 'chunk', { content: 'It was a', timestamp }),
    event(4, 'chunk', { content: ' good year.', timestamp }),
    event(5, 'status', { result }),
  ]
  const frames = [buildConnectFrame(turn), ...events.flatMap((each) => toFrames(turn, each))]
  return frames.map(encodeFrame).join('')
}
