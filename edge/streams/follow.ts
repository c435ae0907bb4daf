import type { Hub } from './hub.ts'
import { isTerminal, type JobEvent } from './job-event.ts'
import type { SseFrame, SseStream, StreamSource } from './sse.ts'

/**
 * Job streams: the current state at once, then every change in order, exactly one terminal frame, then the end. A
 * reader that cannot keep up is sent the latest state once it can, never a backlog.
 */

const frameOf = (event: JobEvent): SseFrame => ({
  event: event.kind,
  id: String(event.seq),
  data: event.frame,
})

// All readers of a job get the same events, which are turned into frames once.
const framed = new WeakMap<readonly JobEvent[], readonly SseFrame[]>()

function framesOf(events: readonly JobEvent[]): readonly SseFrame[] {
  const known = framed.get(events)
  if (known !== undefined) return known
  const frames = events.map(frameOf)
  framed.set(events, frames)
  return frames
}

/** Follows one job from its present `state`, or from the event after `lastSeen` for a reader who comes back. */
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

/** Drops states that a later state has replaced. */
function latest(events: readonly JobEvent[]): readonly JobEvent[] {
  const newest = events.findLast(({ kind }) => kind === 'status')
  return events.filter((event) => event.kind !== 'status' || event === newest)
}
