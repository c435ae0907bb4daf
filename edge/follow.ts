import type { EndedAfter, EndedJobs } from './ended.ts'
import { type Hub, isTerminal, type JobEvent, OVERLAP_MS, parseLine } from './hub.ts'
import type { SseFrame, SseStream, StreamSource } from './sse.ts'

/**
 * Streams of jobs: the current state at once, then every change in order, exactly one terminal frame, the end.
 * A reader that can't keep up is sent the latest state when it can, and never a backlog.
 */

// Of this many jobs a reader of all is known to have seen the latest state: a terminal one must not come twice.
const MOST_REMEMBERED = 10_000
// The number of a terminal state as far as its reader goes: nothing comes after it.
const ENDED = Number.POSITIVE_INFINITY
// A reader of all who is slow is kept the ids of so many jobs.
const MOST_WAITING = 10_000
// The states of this many jobs are read at once, and sent in parts: one of these waits in memory for a reader who is slow.
const STATES_AT_ONCE = 32
const PART_CHARS = 32 * 1024

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
  /** When the reader was last here, in ms since the epoch; null: what has ended is no news. */
  readonly since: number | null
  /** Ids of the live jobs that the reader sees. */
  readonly live: () => Promise<readonly string[]>
  readonly ended: (after: EndedAfter) => Promise<EndedJobs>
  /** Lines of the present states of jobs, in the order of their ids. */
  readonly states: (ids: readonly string[]) => Promise<readonly string[]>
  readonly onError: (error: unknown) => void
}

/** Of two places at least one is there. */
function earlier(next: EndedAfter | null, since: number | null): EndedAfter {
  return next !== null && (since === null || next.ms <= since) ? next : { ms: since!, jobId: null }
}

/**
 * Follows every job that the caller sees: its latest state whenever it changed. Ids are milliseconds of sending. For
 * a reader who is slow only the ids of jobs are kept, and of too many none: it is then sent what it would be sent if
 * it came back.
 */
export function followEverything(hub: Hub, options: EverythingOptions): Exclude<StreamSource, 'ended'> {
  return {
    open: (stream) => {
      // Jobs whose state is still to be read and sent, and since when there have been any.
      const waiting = new Set<string>()
      let waitingSince = 0
      const sent = new Map<string, number>()
      let liveMissed = true
      // Where to go on among those that ended, and since when more of them may have been missed than what follows there.
      let nextEnds: EndedAfter | null = null
      let endsMissed = options.since
      let working = false
      let wake = (): void => {}

      const write = (states: readonly JobEvent[]): void => {
        for (const state of states) {
          // Put back at the end, so that the first is the one that has been quiet for the longest.
          sent.delete(state.jobId)
          sent.set(state.jobId, isTerminal(state) ? ENDED : state.seq)
        }
        for (const jobId of sent.keys()) {
          if (sent.size <= MOST_REMEMBERED) break
          sent.delete(jobId)
        }
        const id = String(Date.now())
        stream.send(states.map((state) => ({ event: 'status', id, data: state.frame })))
      }

      /** Sends what is news, in parts, for as long as the reader takes them. Answers how many of the states are dealt with. */
      const send = (states: readonly JobEvent[]): number => {
        let next = 0
        while (next < states.length && stream.writable) {
          const part: JobEvent[] = []
          for (let chars = 0; next < states.length && chars < PART_CHARS; next++) {
            const state = states[next]!
            if (!options.sees(state.ownerId) || (sent.get(state.jobId) ?? -1) >= state.seq) continue
            part.push(state)
            chars += state.frame.length
          }
          if (part.length > 0) write(part)
        }
        return next
      }

      const wait = (states: readonly JobEvent[]): void => {
        if (waiting.size === 0) waitingSince = Date.now()
        for (const { jobId, ownerId } of states) if (options.sees(ownerId)) waiting.add(jobId)
        if (waiting.size <= MOST_WAITING) return
        waiting.clear()
        liveMissed = true
        endsMissed = Math.min(waitingSince - OVERLAP_MS, endsMissed ?? waitingSince)
      }

      const untilWritable = async (): Promise<void> => {
        while (!stream.writable && !stream.closed)
          await new Promise<void>((resolve) => {
            wake = resolve
          })
      }

      /** Reads and sends states as the reader takes them: of what it was not sent, only ids are kept. */
      const deliver = async (ids: readonly string[]): Promise<void> => {
        let left = ids
        for (;;) {
          await untilWritable()
          if (left.length === 0 || stream.closed) return
          const some = left.slice(0, STATES_AT_ONCE)
          const states = (await options.states(some)).map(parseLine)
          const next = states[send(states)]
          left = left.slice(next === undefined ? some.length : some.indexOf(next.jobId))
        }
      }

      const catchUp = async (): Promise<void> => {
        for (;;) {
          await untilWritable()
          if (stream.closed) return
          if (liveMissed) {
            liveMissed = false
            await deliver(await options.live())
          } else if (nextEnds !== null || endsMissed !== null) {
            const from = earlier(nextEnds, endsMissed)
            endsMissed = null
            const { ids, next } = await options.ended(from)
            await deliver(ids.filter((id) => sent.get(id) !== ENDED))
            nextEnds = next
          } else if (waiting.size > 0) {
            const ids = [...waiting]
            waiting.clear()
            await deliver(ids)
          } else {
            working = false
            return
          }
        }
      }

      const work = (): void => {
        if (working) return
        working = true
        catchUp().catch((error) => {
          options.onError(error)
          stream.end()
        })
      }

      const stop = hub.watchAll((states) => {
        const dealtWith = working ? 0 : send(states)
        if (dealtWith === states.length) return
        wait(states.slice(dealtWith))
        work()
      })
      stream.onWritable(() => wake())
      work()
      return () => {
        stop()
        wake()
      }
    },
  }
}
