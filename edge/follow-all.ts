import type { EndedAfter, EndedJobs } from './ended.ts'
import { ENDED, type Hub, type JobEvent, OVERLAP_MS, parseLine, rankOf } from './hub.ts'
import type { StreamSource } from './sse.ts'

/** The stream of all jobs that a caller sees. */

// Of this many jobs a reader of all is known to have seen the latest state: a terminal one must not come twice.
const MOST_REMEMBERED = 10_000
// A reader of all who is slow is kept the ids of so many jobs.
const MOST_WAITING = 10_000
// The states of this many jobs are read at once, and sent in parts: one of these waits in memory for a reader who is slow.
const STATES_AT_ONCE = 32
const PART_CHARS = 32 * 1024

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
 * Follows every job that the caller sees: its latest state whenever it changed. An id is the moment, in ms, after which
 * is what a reader that comes back with it may not have been sent. For a reader who is slow only the ids of jobs are kept,
 * and of too many none: it is then sent what it would be sent if it came back.
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
      // While there is something left to be read and sent: up to when the reader was sent all.
      let working = false
      let completeUntil = options.since ?? Date.now()
      let wake = (): void => {}

      const write = (states: readonly JobEvent[]): void => {
        for (const state of states) {
          // Put back at the end, so that the first is the one that has been quiet for the longest.
          sent.delete(state.jobId)
          sent.set(state.jobId, rankOf(state))
        }
        for (const jobId of sent.keys()) {
          if (sent.size <= MOST_REMEMBERED) break
          sent.delete(jobId)
        }
        const id = String(Math.floor(working ? completeUntil : Date.now()))
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
            if (next !== null)
              completeUntil = Math.max(
                completeUntil,
                waiting.size === 0 ? next.ms : Math.min(next.ms, waitingSince),
              )
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
        if (!working) completeUntil = Date.now()
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
