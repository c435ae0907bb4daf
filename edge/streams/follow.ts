import type { Hub } from './hub.ts'
import { isTerminal, type JobEvent } from './job-event.ts'
import type { SseFrame, SseStream, StreamSource } from './sse.ts'

/**
 * Streams one job: the current state, then every change in order, then exactly one terminal frame. A slow subscriber
 * gets the latest state once it can receive again, never a backlog.
 */

const frameOf = (event: JobEvent): SseFrame => ({
  event: event.kind,
  id: String(event.seq),
  data: event.frame,
})

// Caches the frames of an array of events, which all subscribers of a job share.
const framesByEvents = new WeakMap<readonly JobEvent[], readonly SseFrame[]>()

function framesOf(events: readonly JobEvent[]): readonly SseFrame[] {
  const cached = framesByEvents.get(events)
  if (cached !== undefined) return cached
  const frames = events.map(frameOf)
  framesByEvents.set(events, frames)
  return frames
}

/** Follows one job from its current `state`, or from the event after `lastSeen` if a subscriber resumes. */
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
        const unseen = last === -1 ? events : events.slice(0, last + 1)
        cursor = unseen[unseen.length - 1]!.seq
        if (last !== -1) finish(stream, stop, unseen)
        else if (!stream.send(framesOf(unseen))) stop()
      }

      if (lastSeen === null) {
        if (isTerminal(state)) {
          finish(stream, stop, [state])
          return () => {}
        }
        stream.send([frameOf(state)])
      }
      stop = hub.watchJob(state.jobId, cursor, push)
      // Reads missed events from the table, and sends only the last of several states.
      stream.onWritable(() => {
        stop()
        stop = hub.watchJob(state.jobId, cursor, (events) => push(dropReplacedStates(events)))
      })
      return () => stop()
    },
  }
}

function finish(stream: SseStream, stop: () => void, events: readonly JobEvent[]): void {
  stop()
  stream.end(framesOf(events))
}

/** Drops all states except the last, and keeps other events. */
function dropReplacedStates(events: readonly JobEvent[]): readonly JobEvent[] {
  const newest = events.findLast(({ kind }) => kind === 'status')
  return events.filter((event) => event.kind !== 'status' || event === newest)
}
