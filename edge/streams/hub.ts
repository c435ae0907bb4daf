import { setImmediate as nextTurn } from 'node:timers/promises'
import { MAX_EVENTS_PER_READ, readEventsAfter } from '../../sql/jobs/events.ts'
import type { Reads } from '../../sql/reads/slow-reads.ts'
import { groupByJob, isTerminal, type JobEvent, parseJobEvent } from './job-event.ts'
import { POLL_INTERVAL_MS, StateWatchers, type WatchersOptions } from './state-watchers.ts'

/**
 * Delivers the ledger's events to the subscribers in this process. A notification has the new events of a job, or only its
 * id. Events that continue a subscriber's cursor are delivered immediately; anything else triggers a read of the table
 * after the cursor. So delivery is in order and without gaps, even if notifications are lost or repeated.
 */
export interface Hub {
  /**
   * Pushes all events of a job after a cursor, in batches. Includes events that are already stored. Returns a function
   * that stops the watch.
   */
  watchJob(jobId: string, after: number, push: (events: readonly JobEvent[]) => void): () => void
  /** Pushes each new state of any job. Returns a function that stops the watch. */
  watchAll(push: (states: readonly JobEvent[]) => void): () => void
  /** Time in ms. Watchers of all jobs have received every job that ended before it. */
  readonly knownUntil: number
  /**
   * Handles a payload of the channel `job_events`, see `job_notify`. Null means a reconnect, which may have lost any
   * notification.
   */
  handleNotification(payload: string | null): void
  /** Resolves to the job's terminal event, or to null after `waitMs`, an abort or stopWaiting(). */
  waitForTerminal(jobId: string, waitMs: number, signal?: AbortSignal): Promise<JobEvent | null>
  /** Ends all current and future waits for terminal events, as if they had timed out. */
  stopWaiting(): void
  readonly watcherCount: number
  close(): void
}

export interface HubOptions extends WatchersOptions {
  /** Receives read errors. The next read retries. */
  readonly onError: (error: unknown) => void
}

export function createHub(options: HubOptions): Hub {
  return new LedgerHub(options)
}

/**
 * Reads for all subscribers in two loops. Each loop has one read in flight, until nothing is left to read. One loop
 * reads changed jobs. The other reads states that may have been missed, which can take long.
 */
class LedgerHub implements Hub {
  readonly #jobs: JobWatchers
  readonly #states: StateWatchers
  readonly #onError: (error: unknown) => void
  /** Callbacks that each end one wait for a terminal event. */
  readonly #pendingWaits = new Set<() => void>()
  #hasStoppedWaiting = false
  readonly #poll: NodeJS.Timeout
  #isReading = false
  #isCatchingUp = false

  constructor(options: HubOptions) {
    this.#jobs = new JobWatchers(options.reader)
    this.#states = new StateWatchers(options, () => this.#wake())
    this.#onError = options.onError
    this.#poll = setInterval(() => this.#readEverything(), POLL_INTERVAL_MS).unref()
  }

  watchJob(jobId: string, after: number, push: (events: readonly JobEvent[]) => void): () => void {
    const stop = this.#jobs.add(jobId, after, push)
    this.#wake()
    return stop
  }

  watchAll(push: (states: readonly JobEvent[]) => void): () => void {
    return this.#states.add(push)
  }

  get knownUntil(): number {
    return this.#states.knownUntil
  }

  handleNotification(payload: string | null): void {
    if (payload === null || payload === '*') {
      this.#readEverything()
      return
    }
    const events: JobEvent[] = []
    for (const line of payload.split('\n')) {
      const tab = line.indexOf('\t')
      const id = tab === -1 ? line : line.slice(0, tab)
      if (tab !== -1 && (this.#jobs.has(id) || this.#states.count > 0)) events.push(parseJobEvent(line))
      else {
        this.#jobs.markChanged(id)
        this.#states.markNamed(id)
      }
    }
    const groups = [...groupByJob(events)]
    for (const group of groups) this.#jobs.receive(group)
    this.#states.receive(groups.map((group) => group.at(-1)!))
    if (this.#jobs.hasChanges || this.#states.hasChanges) this.#wake()
  }

  waitForTerminal(jobId: string, waitMs: number, signal?: AbortSignal): Promise<JobEvent | null> {
    if (this.#hasStoppedWaiting) return Promise.resolve(null)
    return new Promise((resolve) => {
      const finish = (event: JobEvent | null): void => {
        clearTimeout(timer)
        this.#pendingWaits.delete(giveUp)
        stop()
        signal?.removeEventListener('abort', giveUp)
        resolve(event)
      }
      const giveUp = (): void => finish(null)
      const timer = setTimeout(giveUp, waitMs)
      this.#pendingWaits.add(giveUp)
      const stop = this.watchJob(jobId, 0, (events) => {
        const last = events.find(isTerminal)
        if (last !== undefined) finish(last)
      })
      signal?.addEventListener('abort', giveUp)
      if (signal?.aborted) giveUp()
    })
  }

  stopWaiting(): void {
    this.#hasStoppedWaiting = true
    for (const giveUp of this.#pendingWaits) giveUp()
  }

  get watcherCount(): number {
    return this.#jobs.count + this.#states.count
  }

  close(): void {
    clearInterval(this.#poll)
    this.#states.close()
  }

  /** Reads all watched jobs, because any notification may have been lost. */
  #readEverything(): void {
    this.#jobs.markAllChanged()
    this.#states.markMissed()
    this.#wake()
  }

  #wake(): void {
    if (!this.#isReading) {
      this.#isReading = true
      queueMicrotask(() => this.#readChanged())
    }
    if (this.#isCatchingUp || !this.#states.hasMissed) return
    this.#isCatchingUp = true
    void this.#catchUp()
  }

  async #readChanged(): Promise<void> {
    try {
      while (this.#jobs.hasChanges || this.#states.hasChanges) {
        if (this.#jobs.hasChanges) await this.#jobs.readChanged()
        if (this.#states.hasChanges) await this.#states.readChanged()
      }
    } catch (error) {
      // The next notification or poll retries from the same cursors.
      this.#onError(error)
    } finally {
      this.#isReading = false
    }
  }

  async #catchUp(): Promise<void> {
    try {
      while (this.#states.hasMissed) await this.#states.readMissed()
    } catch (error) {
      this.#onError(error)
    } finally {
      this.#isCatchingUp = false
    }
  }
}

// Maximum time in ms of a delivery before it yields to requests. Each watcher costs 14 µs, and there may be thousands.
const MAX_TURN_MS = 0.25

/** A watcher of one job. `after` is the seq of the last event that it received. */
interface JobWatcher {
  after: number
  readonly push: (events: readonly JobEvent[]) => void
}

/** Watchers of single jobs. Each receives every event after its cursor. */
class JobWatchers {
  readonly #reader: Reads
  readonly #byJob = new Map<string, Set<JobWatcher>>()
  readonly #changed = new Set<string>()
  /** Events that notifications brought. */
  #received: (readonly JobEvent[])[] = []
  #count = 0

  constructor(reader: Reads) {
    this.#reader = reader
  }

  has(jobId: string): boolean {
    return this.#byJob.has(jobId)
  }

  get count(): number {
    return this.#count
  }

  /** True if there are events to deliver, or changed jobs whose events must be read. */
  get hasChanges(): boolean {
    return this.#changed.size + this.#received.length > 0
  }

  /** Adds a watcher of a job. Returns a function that removes it. */
  add(jobId: string, after: number, push: JobWatcher['push']): () => void {
    const watcher = { after, push }
    const watchers = this.#byJob.get(jobId) ?? new Set()
    this.#byJob.set(jobId, watchers.add(watcher))
    this.#count++
    this.#changed.add(jobId)
    return () => {
      if (!watchers.delete(watcher)) return
      this.#count--
      if (watchers.size === 0 && this.#byJob.get(jobId) === watchers) this.#byJob.delete(jobId)
    }
  }

  markChanged(jobId: string): void {
    if (this.#byJob.has(jobId)) this.#changed.add(jobId)
  }

  markAllChanged(): void {
    for (const id of this.#byJob.keys()) this.#changed.add(id)
  }

  /** Receives events of a job, in order. Those behind a gap must be read. */
  receive(events: readonly JobEvent[]): void {
    const { jobId, seq } = events[0]!
    if (!this.#byJob.has(jobId)) return
    const gap = events.findIndex((event, i) => event.seq !== seq + i)
    if (gap !== -1) this.#changed.add(jobId)
    this.#received.push(gap === -1 ? events : events.slice(0, gap))
  }

  /** Delivers received events, then reads those of changed jobs. */
  async readChanged(): Promise<void> {
    const received = this.#received
    this.#received = []
    await this.#deliver(received, ({ seq }) => seq - 1)
    const cursors = this.#collectCursors()
    if (cursors.size === 0) return
    const lines = await this.#reader.texts(readEventsAfter, [[...cursors.keys()], [...cursors.values()]])
    const groups = [...groupByJob(lines.map(parseJobEvent))]
    for (const events of groups)
      if (events.length === MAX_EVENTS_PER_READ) this.#changed.add(events[0]!.jobId)
    await this.#deliver(groups, ({ jobId }) => cursors.get(jobId)!)
  }

  /** Delivers all events of jobs after a cursor. A watcher that has not reached it needs a read. */
  async #deliver(
    groups: readonly (readonly JobEvent[])[],
    cursorOf: (first: JobEvent) => number,
  ): Promise<void> {
    let turnEnds = performance.now() + MAX_TURN_MS
    for (const events of groups) {
      const [first] = events
      for (const watcher of this.#byJob.get(first!.jobId) ?? []) {
        if (watcher.after < cursorOf(first!)) this.#changed.add(first!.jobId)
        else deliverUnseenEvents(watcher, events)
        if (performance.now() < turnEnds) continue
        await nextTurn()
        turnEnds = performance.now() + MAX_TURN_MS
      }
    }
  }

  /** Returns the lowest cursor of each changed job's watchers, and clears the set of changed jobs. */
  #collectCursors(): Map<string, number> {
    const cursors = new Map<string, number>()
    for (const id of this.#changed) {
      const watchers = this.#byJob.get(id)
      if (watchers !== undefined) cursors.set(id, Math.min(...Array.from(watchers, ({ after }) => after)))
    }
    this.#changed.clear()
    return cursors
  }
}

/** Delivers the events that a watcher has not received. */
function deliverUnseenEvents(watcher: JobWatcher, events: readonly JobEvent[]): void {
  const unseen = events[0]!.seq > watcher.after ? events : events.filter(({ seq }) => seq > watcher.after)
  if (unseen.length === 0) return
  watcher.after = unseen[unseen.length - 1]!.seq
  watcher.push(unseen)
}
