import type { Settings } from '../../tasks/settings.ts'
import type { EventSink, Responder } from '../http/server.ts'
import { createPlaces, type Place, type PlaceOf } from './places.ts'

/**
 * Server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html). A source pushes frames; it may
 * leave out what a slow reader cannot take, since the table has it.
 */

export interface SseFrame {
  readonly event: string
  readonly id: string
  /** JSON text without line breaks. */
  readonly data: string
}

export interface SseStream {
  /** Sends frames in one write. False: the reader is slow; wait for `onWritable`, then send the latest. */
  send(frames: readonly SseFrame[]): boolean
  readonly writable: boolean
  onWritable(listener: () => void): void
  /** Sends what is left and ends the stream. */
  end(frames?: readonly SseFrame[]): void
  readonly closed: boolean
}

/** What a stream route returns: a source, or that nothing follows `Last-Event-ID` (204 stops a reconnect). */
export type StreamSource = { open(stream: SseStream): () => void } | 'ended'

/** The reader of a stream. */
export interface Subscriber {
  /** Null: no account, of which nothing can change. */
  readonly accountId: number | null
  /** Whether the reader would still be let in. Rejects when that cannot be determined now. */
  isAuthorized(): Promise<boolean>
  /** Called before frames are sent. */
  beforeSending(): void
}

/** All streams of a process: one timer keeps them alive, one call ends them. */
export interface Streams {
  readonly place: PlaceOf
  open(
    responder: Responder,
    head: { status: number; headers: readonly (readonly [string, string])[] },
    source: { open(stream: SseStream): () => void },
    subscriber: Subscriber,
    place: Place,
  ): void
  /** An account has changed (null: any may have): ends the streams of readers who would no longer be let in. */
  recheck(accountId: number | null): void
  readonly count: number
  /** Ends every stream and asks its reader to come back at once, to another process. */
  close(): void
}

const HEARTBEAT_MS = 15_000
// How long a reader waits before it comes back: short, since streams end when a process restarts.
const RETRY = 'retry: 1000\n\n'

export const SSE_HEADERS: readonly (readonly [string, string])[] = [
  ['content-type', 'text/event-stream; charset=utf-8'],
  ['cache-control', 'no-store'],
  // A proxy that buffers would hold the events back.
  ['x-accel-buffering', 'no'],
]

export function createStreams(limits: Settings['maxStreams']): Streams {
  const open = new Map<EventSink, Reading>()
  let closed = false
  const timer = setInterval(() => {
    for (const sink of open.keys()) if (sink.writable) sink.write(':\n\n')
  }, HEARTBEAT_MS).unref()

  return {
    place: createPlaces(limits),
    open: (responder, head, source, subscriber, place) => {
      const sink = responder.events(head)
      if (sink.closed) return
      if (closed) {
        sink.end(RETRY)
        return
      }
      place.taken = true
      let stop: (() => void) | null = null
      const forget = (): void => {
        open.delete(sink)
        place.giveUp()
        stop?.()
      }
      const end = (): void => {
        sink.end(RETRY)
        forget()
      }
      const reading = { subscriber, end }
      open.set(sink, reading)
      sink.write(RETRY)
      sink.onClose(forget)
      stop = source.open(streamOver(sink, subscriber, forget))
      if (sink.closed) stop()
      // The account may have changed since its reader was let in.
      else check(sink, reading)
    },
    recheck: (accountId) => {
      for (const [sink, reading] of open) {
        const { accountId: reader } = reading.subscriber
        if (reader !== null && (accountId === null || accountId === reader)) check(sink, reading)
      }
    },
    get count() {
      return open.size
    },
    close: () => {
      closed = true
      clearInterval(timer)
      for (const sink of open.keys()) sink.end(RETRY)
    },
  }
}

interface Reading {
  readonly subscriber: Subscriber
  end(): void
}

/** Ends a stream whose reader is no longer authorized. While the database is down none ends: all are checked later. */
function check(sink: EventSink, { subscriber, end }: Reading): void {
  const authorized = subscriber.isAuthorized().catch(() => true)
  void authorized.then((still) => {
    if (!still && !sink.closed) end()
  })
}

function streamOver(sink: EventSink, subscriber: Subscriber, ended: () => void): SseStream {
  return {
    send: (frames) => {
      subscriber.beforeSending()
      return sink.write(textOf(frames))
    },
    get writable() {
      return sink.writable
    },
    onWritable: (listener) => sink.onWritable(listener),
    end: (frames = []) => {
      subscriber.beforeSending()
      sink.end(textOf(frames))
      ended()
    },
    get closed() {
      return sink.closed
    },
  }
}

// Readers of one job are sent the same frames.
const texts = new WeakMap<readonly SseFrame[], string>()

function textOf(frames: readonly SseFrame[]): string {
  const known = texts.get(frames)
  if (known !== undefined) return known
  const text = frames.map(frameText).join('')
  texts.set(frames, text)
  return text
}

/** A frame as it is sent. */
export function frameText({ event, id, data }: SseFrame): string {
  return `event: ${event}\nid: ${id}\ndata: ${data}\n\n`
}
