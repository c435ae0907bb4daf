import type { Settings } from '../../tasks/platform/settings/settings.ts'
import type { EventSink, Responder } from '../http/server.ts'
import { type AcquirePermit, createStreamQuota, type StreamPermit } from './stream-permits.ts'

/**
 * Server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html). A source pushes frames. It may
 * skip frames for a slow subscriber, because the table stores all events.
 */

export interface SseFrame {
  /** Absent in the streams of OpenAI's protocol, like the id. */
  readonly event?: string
  readonly id?: string
  /** Event data as JSON without line breaks. */
  readonly data: string
}

export interface SseStream {
  /**
   * Sends frames in one write. Returns false if the subscriber is slow. The source then waits for `onWritable` and
   * sends the latest frames.
   */
  send(frames: readonly SseFrame[]): boolean
  readonly writable: boolean
  onWritable(listener: () => void): void
  /** Sends the last frames and ends the stream. */
  end(frames?: readonly SseFrame[]): void
  readonly closed: boolean
}

/**
 * Result of a stream route: a source, or `ended` if no event follows `Last-Event-ID`. The response to `ended` is 204,
 * which stops the client from reconnecting.
 */
export type StreamSource = FrameSource | 'ended'

export interface FrameSource {
  open(stream: SseStream): () => void
  /**
   * True for frames of data alone, without a delay for reconnects, names and ids, as in OpenAI's protocol. Its client in
   * Python takes such fields for an event without data.
   */
  readonly isBare?: boolean
}

export interface Subscriber {
  /** Null if the subscriber has no account. Then no account change affects the stream. */
  readonly accountId: number | null
  /** True if the subscriber still has access. Rejects if the check fails. */
  isAuthorized(): Promise<boolean>
}

/** All streams of a process. One timer sends their heartbeats. */
export interface Streams {
  readonly acquirePermit: AcquirePermit
  open(
    responder: Responder,
    head: { status: number; headers: readonly (readonly [string, string])[] },
    source: FrameSource,
    subscriber: Subscriber,
    place: StreamPermit,
  ): void
  /**
   * Rechecks the streams of a changed account, and ends those that have lost access. Null rechecks the streams of all
   * accounts.
   */
  recheck(accountId: number | null): void
  readonly count: number
  /** Ends every stream and asks its subscriber to reconnect to another process. */
  close(): void
}

const HEARTBEAT_INTERVAL_MS = 15_000
// Clients wait 1 s before they reconnect. The delay is short, because streams end whenever a process restarts.
const RETRY_FIELD = 'retry: 1000\n\n'

export const SSE_HEADERS: readonly (readonly [string, string])[] = [
  ['content-type', 'text/event-stream; charset=utf-8'],
  ['cache-control', 'no-store'],
  // Stops proxies from buffering, which would delay the events.
  ['x-accel-buffering', 'no'],
]

export function createStreams(limits: Settings['maxStreams']): Streams {
  const open = new Map<EventSink, OpenStream>()
  let closed = false
  const timer = setInterval(() => {
    for (const sink of open.keys()) if (sink.isWritable) sink.write(':\n\n')
  }, HEARTBEAT_INTERVAL_MS).unref()

  return {
    acquirePermit: createStreamQuota(limits),
    open: (responder, head, source, subscriber, place) => {
      const sink = responder.openEvents(head)
      if (sink.closed) return
      if (closed) {
        sink.end(RETRY_FIELD)
        return
      }
      const retryField = source.isBare === true ? '' : RETRY_FIELD
      place.isHeldByStream = true
      let stop: (() => void) | null = null
      const release = (): void => {
        open.delete(sink)
        place.release()
        stop?.()
      }
      const end = (): void => {
        sink.end(retryField)
        release()
      }
      const stream = { subscriber, end, retryField }
      open.set(sink, stream)
      if (retryField !== '') sink.write(retryField)
      sink.onClose(release)
      stop = source.open(wrapSink(sink, release))
      if (sink.closed) stop()
      // The account may have changed since the access check.
      else recheckStream(sink, stream)
    },
    recheck: (accountId) => {
      for (const [sink, stream] of open) {
        const { accountId: subscriberId } = stream.subscriber
        if (subscriberId !== null && (accountId === null || accountId === subscriberId))
          recheckStream(sink, stream)
      }
    },
    get count() {
      return open.size
    },
    close: () => {
      closed = true
      clearInterval(timer)
      for (const [sink, { retryField }] of open) sink.end(retryField)
    },
  }
}

interface OpenStream {
  /** Sent at the start and at the end. */
  readonly retryField: string
  readonly subscriber: Subscriber
  end(): void
}

/**
 * Ends a stream if its subscriber has lost access. If the check fails, the stream stays open, because all streams are
 * rechecked after an outage.
 */
function recheckStream(sink: EventSink, { subscriber, end }: OpenStream): void {
  const authorized = subscriber.isAuthorized().catch(() => true)
  void authorized.then((isAuthorized) => {
    if (!isAuthorized && !sink.closed) end()
  })
}

function wrapSink(sink: EventSink, ended: () => void): SseStream {
  return {
    send: (frames) => sink.write(encodeFrames(frames)),
    get writable() {
      return sink.isWritable
    },
    onWritable: (listener) => sink.onWritable(listener),
    end: (frames = []) => {
      sink.end(encodeFrames(frames))
      ended()
    },
    get closed() {
      return sink.closed
    },
  }
}

// Caches the encoding of an array of frames, which all subscribers of a job share.
const encodedFrames = new WeakMap<readonly SseFrame[], string>()

function encodeFrames(frames: readonly SseFrame[]): string {
  const cached = encodedFrames.get(frames)
  if (cached !== undefined) return cached
  const text = frames.map(encodeFrame).join('')
  encodedFrames.set(frames, text)
  return text
}

/** Encodes a frame in the SSE format. */
export function encodeFrame({ event, id, data }: SseFrame): string {
  const name = event === undefined ? '' : `event: ${event}\n`
  return `${name}${id === undefined ? '' : `id: ${id}\n`}data: ${data}\n\n`
}
