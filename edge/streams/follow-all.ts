import type { EndedJobsCursor, EndedJobsPage } from './ended-jobs.ts'
import type { Hub } from './hub.ts'
import { ENDED_RANK, isTerminal, type JobEvent, parseJobEvent, rankOf } from './job-event.ts'
import type { SseFrame, SseStream, StreamSource } from './sse.ts'

/** Streams the states of many jobs. */

// Maximum number of jobs whose last sent state is remembered, so that no terminal state is sent twice. Exceeds the
// members that one request adds to a batch.
const MAX_REMEMBERED_JOBS = 20_000
// Maximum number of job ids to keep for a slow subscriber.
const MAX_WAITING_IDS = 10_000
// Number of jobs whose states one statement reads.
const STATES_PER_READ = 32
// Size of the parts in which states are sent. A slow subscriber holds at most one part in memory.
const PART_CHARS = 32 * 1024

/** Id of the last frame of a stream that ends. Nothing follows it. */
export const END_ID = 'end'

export interface FollowAllOptions {
  /** True if the stream has this state. */
  readonly includes: (state: JobEvent) => boolean
  /** Event name of a state; default `status`. */
  readonly nameOf?: (state: JobEvent) => string
  /** The jobs after whose ends the stream ends; absent if it never ends. */
  readonly named?: readonly string[]
  /** The named job whose end is the last frame, after all other ends; absent if their order does not matter. */
  readonly last?: string
  /** `Last-Event-ID` of the subscriber, in ms since 1970. Null omits jobs that ended before the stream opened. */
  readonly since: number | null
  /** Reads the ids of the live jobs that the subscriber may see. */
  readonly readLiveIds: () => Promise<readonly string[]>
  /** Reads the next page of ended jobs that the subscriber may see. */
  readonly readEndedPage: (after: EndedJobsCursor) => Promise<EndedJobsPage>
  /** Reads the current states of jobs as lines, ordered by id. */
  readonly readStates: (ids: readonly string[]) => Promise<readonly string[]>
  readonly onError: (error: unknown) => void
}

/**
 * Follows jobs, and sends the latest state of each after each change. An event id is a time in ms on the database's
 * clock. All jobs that ended before it have been sent, so a subscriber can resume with it at any process. For a slow
 * subscriber only job ids are kept. If there are too many, the ids are dropped, and the subscriber catches up as if it
 * had reconnected.
 */
export function followAllJobs(hub: Hub, options: FollowAllOptions): Exclude<StreamSource, 'ended'> {
  return {
    open: (stream) => {
      const stop = hub.watchAll((states) => subscriber.receive(states))
      const subscriber = new AllJobsSubscriber(hub, stream, options)
      return () => {
        stop()
        subscriber.close()
      }
    },
  }
}

/** One subscriber, with the states sent to it and the jobs still to be sent. */
class AllJobsSubscriber {
  readonly #hub: Pick<Hub, 'knownUntil'>
  readonly #stream: SseStream
  readonly #options: FollowAllOptions
  /** Rank of the last sent state of each job. Entries are ordered by the time of sending, oldest first. */
  readonly #sentRanks = new Map<string, number>()
  /** Ids of jobs whose state must be read and sent. */
  readonly #waitingIds = new Set<string>()
  /** Time in ms. No waiting job ended before it. */
  #waitingSince = 0
  #mustReadLive = true
  /** Cursor of the next page of ended jobs; null if none is left. */
  #endedCursor: EndedJobsCursor | null = null
  /** Time in ms after which the subscriber may have missed ended jobs; null if it has missed none. */
  #endsMissedSince: number | null
  #isCatchingUp = false
  /** Named jobs whose end was not sent; null if the stream never ends. */
  readonly #unended: Set<string> | null
  /** The state that ends the stream once all other ends have been sent. */
  #lastState: JobEvent | null = null
  /** Time in ms. Every job that ended before it has been sent. */
  #completeUntil: number
  #wake = (): void => {}

  constructor(hub: Pick<Hub, 'knownUntil'>, stream: SseStream, options: FollowAllOptions) {
    this.#hub = hub
    this.#stream = stream
    this.#options = options
    this.#endsMissedSince = options.since
    this.#unended = options.named === undefined ? null : new Set(options.named)
    this.#completeUntil = options.since ?? hub.knownUntil
    stream.onWritable(() => this.#wake())
    this.#startCatchUp()
  }

  /** Receives states from the hub. Sends them immediately or keeps their ids. */
  receive(states: readonly JobEvent[]): void {
    if (!this.#isCatchingUp) this.#completeUntil = Math.max(this.#completeUntil, this.#hub.knownUntil)
    const handledCount = this.#isCatchingUp ? 0 : this.#send(states)
    if (handledCount === states.length) return
    this.#keepIds(states.slice(handledCount))
    this.#startCatchUp()
  }

  /** Wakes the catch-up loop after the stream has closed. */
  close(): void {
    this.#wake()
  }

  /** Sends unsent states in parts while the stream is writable. Returns the number of states handled. */
  #send(states: readonly JobEvent[]): number {
    let next = 0
    while (next < states.length && this.#stream.writable && !this.#stream.closed) {
      const part: JobEvent[] = []
      for (let chars = 0; next < states.length && chars < PART_CHARS; next++) {
        const state = states[next]!
        if (!this.#options.includes(state) || (this.#sentRanks.get(state.jobId) ?? -1) >= state.seq) continue
        if (state.jobId === this.#options.last && isTerminal(state)) {
          this.#holdLast(state)
          continue
        }
        part.push(state)
        chars += state.frame.length
      }
      if (part.length > 0) this.#write(part)
    }
    return next
  }

  #write(states: readonly JobEvent[]): void {
    for (const state of states) {
      this.#sentRanks.delete(state.jobId)
      this.#sentRanks.set(state.jobId, rankOf(state))
      if (isTerminal(state)) this.#unended?.delete(state.jobId)
    }
    for (const jobId of this.#sentRanks.keys()) {
      if (this.#sentRanks.size <= MAX_REMEMBERED_JOBS) break
      this.#sentRanks.delete(jobId)
    }
    const id = String(Math.floor(this.#completeUntil))
    const frames = states.map((state) => this.#toFrame(state, id))
    if (this.#unended?.size === 0)
      this.#stream.end([...frames.slice(0, -1), { ...frames.at(-1)!, id: END_ID }])
    else this.#stream.send(frames)
  }

  #toFrame(state: JobEvent, id: string): SseFrame {
    return { event: this.#options.nameOf?.(state) ?? 'status', id, data: state.frame }
  }

  /** Keeps the last state until all other ends are read again: their notifications may come later, or be lost. */
  #holdLast(state: JobEvent): void {
    if (this.#lastState !== null) return
    this.#lastState = state
    this.#endsMissedSince = Math.min(this.#completeUntil, this.#endsMissedSince ?? this.#completeUntil)
    this.#startCatchUp()
  }

  #keepIds(states: readonly JobEvent[]): void {
    if (this.#waitingIds.size === 0) this.#waitingSince = this.#hub.knownUntil
    for (const state of states) if (this.#options.includes(state)) this.#waitingIds.add(state.jobId)
    if (this.#waitingIds.size <= MAX_WAITING_IDS) return
    this.#waitingIds.clear()
    this.#mustReadLive = true
    this.#endsMissedSince = Math.min(this.#waitingSince, this.#endsMissedSince ?? this.#waitingSince)
  }

  #startCatchUp(): void {
    if (this.#isCatchingUp) return
    this.#isCatchingUp = true
    this.#catchUp().catch((error) => {
      this.#options.onError(error)
      this.#stream.end()
    })
  }

  async #catchUp(): Promise<void> {
    for (;;) {
      await this.#waitUntilWritable()
      if (this.#stream.closed) return
      if (this.#mustReadLive) {
        this.#mustReadLive = false
        await this.#deliver(await this.#options.readLiveIds())
      } else if (this.#endedCursor !== null || this.#endsMissedSince !== null) {
        await this.#deliverEnds()
      } else if (this.#waitingIds.size > 0) {
        const ids = [...this.#waitingIds]
        this.#waitingIds.clear()
        await this.#deliver(ids)
      } else {
        if (this.#lastState !== null) this.#stream.end([this.#toFrame(this.#lastState, END_ID)])
        else if (this.#unended?.size === 0) this.#stream.end()
        this.#isCatchingUp = false
        return
      }
    }
  }

  async #deliverEnds(): Promise<void> {
    const from = earlierCursor(this.#endedCursor, this.#endsMissedSince)
    this.#endsMissedSince = null
    // Read this before the page, because the page may lack jobs that end later in transactions that are still open.
    const { knownUntil } = this.#hub
    const { ids, next } = await this.#options.readEndedPage(from)
    await this.#deliver(ids.filter((id) => this.#sentRanks.get(id) !== ENDED_RANK))
    this.#endedCursor = next
    if (next === null) return
    const sentUntil = this.#waitingIds.size === 0 ? next.ms : Math.min(next.ms, this.#waitingSince)
    this.#completeUntil = Math.max(this.#completeUntil, Math.min(sentUntil, knownUntil))
  }

  /** Reads and sends states at the subscriber's pace. Keeps only the ids of unsent states. */
  async #deliver(ids: readonly string[]): Promise<void> {
    let left = ids
    for (;;) {
      await this.#waitUntilWritable()
      if (left.length === 0 || this.#stream.closed) return
      const batch = left.slice(0, STATES_PER_READ)
      const states = (await this.#options.readStates(batch)).map(parseJobEvent)
      if (this.#unended !== null) this.#forgetDeleted(batch, states)
      const next = states[this.#send(states)]
      left = left.slice(next === undefined ? batch.length : batch.indexOf(next.jobId))
    }
  }

  /** Waits no longer for the ends of jobs that have been deleted. */
  #forgetDeleted(ids: readonly string[], states: readonly JobEvent[]): void {
    const found = new Set(states.map(({ jobId }) => jobId))
    for (const id of ids) if (!found.has(id)) this.#unended?.delete(id)
  }

  async #waitUntilWritable(): Promise<void> {
    while (!this.#stream.writable && !this.#stream.closed)
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
  }
}

/** Returns the earlier of two cursors, of which at least one is not null. */
function earlierCursor(next: EndedJobsCursor | null, since: number | null): EndedJobsCursor {
  return next !== null && (since === null || next.ms <= since) ? next : { ms: since!, jobId: null }
}
