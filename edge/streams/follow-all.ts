import type { EndedAfter, EndedJobs } from './ended-jobs.ts'
import type { Hub } from './hub.ts'
import { ENDED, type JobEvent, parseLine, rankOf } from './job-event.ts'
import type { SseStream, StreamSource } from './sse.ts'

/** The stream of all jobs that a caller sees. */

// The latest state sent is remembered for this many jobs: a terminal one must not be sent twice.
const MAX_REMEMBERED = 10_000
// The most job ids that are kept for a slow reader.
const MAX_WAITING = 10_000
// The states of this many jobs are read at once and sent in parts; one part waits in memory for a slow reader.
const STATES_AT_ONCE = 32
const PART_CHARS = 32 * 1024

export interface EverythingOptions {
  readonly sees: (ownerId: number | null) => boolean
  /** When the reader was last here, in ms since the epoch; null: jobs that have ended are not sent. */
  readonly since: number | null
  /** Ids of the live jobs that the reader sees. */
  readonly live: () => Promise<readonly string[]>
  readonly ended: (after: EndedAfter) => Promise<EndedJobs>
  /** Lines of the current states of jobs, ordered by id. */
  readonly states: (ids: readonly string[]) => Promise<readonly string[]>
  readonly onError: (error: unknown) => void
}

/**
 * Follows every job that the caller sees: its latest state whenever it has changed. An id is a moment, in ms by the database's
 * clock: a reader that comes back with it, to whatever process, has been sent every end before it. For a slow reader only job
 * ids are kept, and if they are too many, none: it is then sent what it would be sent if it came back.
 */
export function followEverything(hub: Hub, options: EverythingOptions): Exclude<StreamSource, 'ended'> {
  return {
    open: (stream) => {
      const stop = hub.watchAll((states) => reader.take(states))
      const reader = new Follower(hub, stream, options)
      return () => {
        stop()
        reader.close()
      }
    },
  }
}

/** One reader: what was sent to it, and what is still to be read and sent. */
class Follower {
  readonly #hub: Pick<Hub, 'knownUntil'>
  readonly #stream: SseStream
  readonly #options: EverythingOptions
  /** The last state sent of each job; the job that has been quiet for longest comes first. */
  readonly #sent = new Map<string, number>()
  /** Jobs whose state is still to be read and sent, and since when there have been any. */
  readonly #waiting = new Set<string>()
  #waitingSince = 0
  #liveMissed = true
  /** Where to continue among ended jobs, and since when others of them may have been missed. */
  #nextEnds: EndedAfter | null = null
  #endsMissed: number | null
  /** Whether something is left to be read and sent, and until when the reader has been sent everything. */
  #working = false
  #completeUntil: number
  #wake = (): void => {}

  constructor(hub: Pick<Hub, 'knownUntil'>, stream: SseStream, options: EverythingOptions) {
    this.#hub = hub
    this.#stream = stream
    this.#options = options
    this.#endsMissed = options.since
    this.#completeUntil = options.since ?? hub.knownUntil
    stream.onWritable(() => this.#wake())
    this.#work()
  }

  /** News of the hub: sent at once, or kept as ids. */
  take(states: readonly JobEvent[]): void {
    if (!this.#working) this.#completeUntil = Math.max(this.#completeUntil, this.#hub.knownUntil)
    const dealtWith = this.#working ? 0 : this.#send(states)
    if (dealtWith === states.length) return
    this.#wait(states.slice(dealtWith))
    this.#work()
  }

  /** Wakes a loop that waits for the stream, which has closed. */
  close(): void {
    this.#wake()
  }

  /** Sends what is new, in parts, as long as the reader takes them. Returns how many of the states are dealt with. */
  #send(states: readonly JobEvent[]): number {
    let next = 0
    while (next < states.length && this.#stream.writable) {
      const part: JobEvent[] = []
      for (let chars = 0; next < states.length && chars < PART_CHARS; next++) {
        const state = states[next]!
        if (!this.#options.sees(state.ownerId) || (this.#sent.get(state.jobId) ?? -1) >= state.seq) continue
        part.push(state)
        chars += state.frame.length
      }
      if (part.length > 0) this.#write(part)
    }
    return next
  }

  #write(states: readonly JobEvent[]): void {
    for (const state of states) {
      this.#sent.delete(state.jobId)
      this.#sent.set(state.jobId, rankOf(state))
    }
    for (const jobId of this.#sent.keys()) {
      if (this.#sent.size <= MAX_REMEMBERED) break
      this.#sent.delete(jobId)
    }
    const id = String(Math.floor(this.#completeUntil))
    this.#stream.send(states.map((state) => ({ event: 'status', id, data: state.frame })))
  }

  #wait(states: readonly JobEvent[]): void {
    if (this.#waiting.size === 0) this.#waitingSince = this.#hub.knownUntil
    for (const { jobId, ownerId } of states) if (this.#options.sees(ownerId)) this.#waiting.add(jobId)
    if (this.#waiting.size <= MAX_WAITING) return
    this.#waiting.clear()
    this.#liveMissed = true
    this.#endsMissed = Math.min(this.#waitingSince, this.#endsMissed ?? this.#waitingSince)
  }

  #work(): void {
    if (this.#working) return
    this.#working = true
    this.#catchUp().catch((error) => {
      this.#options.onError(error)
      this.#stream.end()
    })
  }

  async #catchUp(): Promise<void> {
    for (;;) {
      await this.#untilWritable()
      if (this.#stream.closed) return
      if (this.#liveMissed) {
        this.#liveMissed = false
        await this.#deliver(await this.#options.live())
      } else if (this.#nextEnds !== null || this.#endsMissed !== null) {
        await this.#deliverEnds()
      } else if (this.#waiting.size > 0) {
        const ids = [...this.#waiting]
        this.#waiting.clear()
        await this.#deliver(ids)
      } else {
        this.#working = false
        return
      }
    }
  }

  async #deliverEnds(): Promise<void> {
    const from = earlier(this.#nextEnds, this.#endsMissed)
    this.#endsMissed = null
    // Beyond it, ends may be under way.
    const { knownUntil } = this.#hub
    const { ids, next } = await this.#options.ended(from)
    await this.#deliver(ids.filter((id) => this.#sent.get(id) !== ENDED))
    this.#nextEnds = next
    if (next === null) return
    const sentUntil = this.#waiting.size === 0 ? next.ms : Math.min(next.ms, this.#waitingSince)
    this.#completeUntil = Math.max(this.#completeUntil, Math.min(sentUntil, knownUntil))
  }

  /** Reads and sends states as the reader takes them; only the ids of unsent ones are kept. */
  async #deliver(ids: readonly string[]): Promise<void> {
    let left = ids
    for (;;) {
      await this.#untilWritable()
      if (left.length === 0 || this.#stream.closed) return
      const some = left.slice(0, STATES_AT_ONCE)
      const states = (await this.#options.states(some)).map(parseLine)
      const next = states[this.#send(states)]
      left = left.slice(next === undefined ? some.length : some.indexOf(next.jobId))
    }
  }

  async #untilWritable(): Promise<void> {
    while (!this.#stream.writable && !this.#stream.closed)
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
  }
}

/** Where to read: the earlier of the two, of which at least one is given. */
function earlier(next: EndedAfter | null, since: number | null): EndedAfter {
  return next !== null && (since === null || next.ms <= since) ? next : { ms: since!, jobId: null }
}
