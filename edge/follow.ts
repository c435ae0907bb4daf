import { type Hub, isTerminal, type JobEvent, parseLine } from './hub.ts'
import type { SseFrame, SseStream, StreamSource } from './sse.ts'

/**
 * Streams of jobs: the current state at once, then every change in order, exactly one terminal frame, the end.
 * A reader that can't keep up is sent the latest state when it can, and never a backlog.
 */

// Of this many jobs a reader of all is known to have seen the latest state: a terminal one must not come twice.
const MOST_REMEMBERED = 10_000

const frameOf = (event: JobEvent): SseFrame => ({
  event: event.kind,
  id: String(event.seq),
  data: event.frame,
})

// The readers of one job are given the same events: they are put into frames once.
const framed = new WeakMap<readonly JobEvent[], readonly SseFrame[]>()

function framesOf(events: readonly JobEvent[]): readonly SseFrame[] {
  const known = framed.get(events)
  if (known !== undefined) return known
  const frames = events.map(frameOf)
  framed.set(events, frames)
  return frames
}

/** Follows one job from its present `state`, or from the event after `lastSeen` for one who comes back. */
export function followJob(
  hub: Hub,
  state: JobEvent,
  lastSeen: number | null,
): Exclude<StreamSource, 'ended'> {
  return {
    open: (stream) => {
      let cursor = lastSeen ?? state.seq
      let stop = (): void => {}

      const push = (events: readonly JobEvent[]): void => {
        if (stream.closed) return
        const last = events.findIndex(isTerminal)
        const news = last === -1 ? events : events.slice(0, last + 1)
        cursor = news[news.length - 1]!.seq
        if (last !== -1) finish(stream, stop, news)
        else if (!stream.send(framesOf(news))) stop()
      }

      if (lastSeen === null) {
        if (isTerminal(state)) {
          finish(stream, stop, [state])
          return () => {}
        }
        stream.send([frameOf(state)])
      }
      stop = hub.watchJob(state.jobId, cursor, push)
      // What a slow reader missed is in the table; of a run of states it is sent only the last.
      stream.onWritable(() => {
        stop()
        stop = hub.watchJob(state.jobId, cursor, (events) => push(latest(events)))
      })
      return () => stop()
    },
  }
}

function finish(stream: SseStream, stop: () => void, events: readonly JobEvent[]): void {
  stop()
  stream.end(framesOf(events))
}

/** Events without the states that a later state has overtaken. */
function latest(events: readonly JobEvent[]): readonly JobEvent[] {
  const newest = events.findLast(({ kind }) => kind === 'status')
  return events.filter((event) => event.kind !== 'status' || event === newest)
}

export interface EverythingOptions {
  readonly sees: (ownerId: number | null) => boolean
  /** Lines of the live jobs, and of those that ended since the reader was last here. */
  readonly now: () => Promise<readonly string[]>
  readonly onError: (error: unknown) => void
}

/** Follows every job that the caller sees: its latest state whenever it changed. Ids are milliseconds of sending. */
export function followEverything(hub: Hub, options: EverythingOptions): Exclude<StreamSource, 'ended'> {
  return {
    open: (stream) => {
      // One pending state per job: what comes while the reader is slow, or before the first states are read.
      const pending = new Map<string, JobEvent>()
      const sent = new Map<string, number>()
      let ready = false

      const flush = (): void => {
        if (!ready || !stream.writable || pending.size === 0) return
        const id = String(Date.now())
        const frames = [...pending.values()].filter((state) => (sent.get(state.jobId) ?? -1) < state.seq)
        pending.clear()
        for (const state of frames) {
          // Put back at the end, so that the first is the one that has been quiet for the longest.
          sent.delete(state.jobId)
          sent.set(state.jobId, state.seq)
        }
        for (const jobId of sent.keys()) {
          if (sent.size <= MOST_REMEMBERED) break
          sent.delete(jobId)
        }
        if (frames.length > 0)
          stream.send(frames.map((state) => ({ event: 'status', id, data: state.frame })))
      }
      const push = (states: readonly JobEvent[]): void => {
        for (const state of states) if (options.sees(state.ownerId)) pending.set(state.jobId, state)
        flush()
      }

      const stop = hub.watchAll(push)
      stream.onWritable(flush)
      options.now().then(
        (lines) => {
          for (const state of lines.map(parseLine)) {
            const newer = pending.get(state.jobId)
            if (newer === undefined || newer.seq < state.seq) pending.set(state.jobId, state)
          }
          ready = true
          flush()
        },
        (error) => {
          options.onError(error)
          stream.end()
        },
      )
      return stop
    },
  }
}
