import { readCurrentStates } from '../../sql/jobs/events.ts'
import { readLiveIds } from '../../sql/jobs/lists.ts'
import type { Reads } from '../../sql/reads/slow-reads.ts'
import { type EndedJobsCursor, type EndedJobsPage, readEndedJobs, type Viewer } from './ended-jobs.ts'
import { ENDED_RANK, type JobEvent, parseJobEvent, rankOf } from './job-event.ts'

// Poll interval: the maximum delay after a lost notification. A crash between commit and notify loses the notification.
export const POLL_INTERVAL_MS = 5_000
const MAX_TRACKED = 200_000
// Delay of the read of jobs that a notification only names. Most were just added, and the notification of their start follows
// within it.
const NAMED_READ_DELAY_MS = 25
const ADMIN_VIEWER: Viewer = [null, true]

export interface WatchersOptions {
  readonly reader: Reads
  /** Reads that can return many rows. */
  readonly listReader: Reads
  /** Returns the database's time in ms. */
  readonly now: () => number
  /**
   * Returns the visibility horizon in ms: every job that ended before it is visible. A job ends at the start time of a
   * transaction, so it can become visible after jobs that ended later.
   */
  readonly visibilityHorizon: () => number
}

/** Watchers of all jobs. They receive the latest state of each changed job, and no state twice. */
export class StateWatchers {
  readonly #reader: Reads
  readonly #lists: Reads
  readonly #now: () => number
  readonly #visibilityHorizon: () => number
  readonly #pushes = new Set<(states: readonly JobEvent[]) => void>()
  readonly #changed = new Set<string>()
  /** Changed jobs whose states are read after a delay, unless a notification brings them. */
  readonly #named = new Set<string>()
  readonly #onDue: () => void
  #delay: NodeJS.Timeout | null = null
  // Drops repeated states, because two notifications may find the same one and a poll finds most of them again.
  readonly #pushed: DedupWindow
  #missed = false
  #knownUntil = 0

  /** @param onDue called when changed jobs are due to be read. */
  constructor({ reader, listReader, now, visibilityHorizon }: WatchersOptions, onDue: () => void) {
    this.#onDue = onDue
    this.#reader = reader
    this.#lists = listReader
    this.#now = now
    this.#visibilityHorizon = visibilityHorizon
    this.#pushed = new DedupWindow(now())
  }

  /** Time in ms. The watchers have received every job that ended before it, but may have missed later ones. */
  get knownUntil(): number {
    return this.#knownUntil
  }

  get count(): number {
    return this.#pushes.size
  }

  /** True if a job has changed and its state must be read. */
  get hasChanges(): boolean {
    return this.#changed.size > 0
  }

  /** True if watchers may have missed changes of any job. */
  get hasMissed(): boolean {
    return this.#missed
  }

  /** Adds a watcher of all jobs. Returns a function that removes it. */
  add(push: (states: readonly JobEvent[]) => void): () => void {
    if (this.#pushes.size === 0) this.#knownUntil = this.#visibilityHorizon()
    this.#pushes.add(push)
    return () => this.#pushes.delete(push)
  }

  /** Marks a job that a notification only names. */
  markNamed(jobId: string): void {
    if (this.#pushes.size === 0) return
    this.#named.add(jobId)
    this.#delay ??= setTimeout(() => this.#readNamed(), NAMED_READ_DELAY_MS)
  }

  /** Receives the last events of changed jobs. An event without a status may follow one that was not received. */
  receive(events: readonly JobEvent[]): void {
    if (this.#pushes.size === 0) return
    for (const { kind, jobId } of events) {
      this.#named.delete(jobId)
      if (kind !== 'status') this.#changed.add(jobId)
    }
    this.#push(events.filter(({ kind }) => kind === 'status'))
  }

  markMissed(): void {
    this.#missed = this.#pushes.size > 0
  }

  async readChanged(): Promise<void> {
    const ids = [...this.#changed]
    this.#changed.clear()
    await this.#readStates(ids)
  }

  /** Reads the live jobs, then pages of the jobs that ended after `knownUntil`. readChanged() may run concurrently. */
  async readMissed(): Promise<void> {
    this.#missed = false
    const horizon = this.#visibilityHorizon()
    await this.#readStates(await this.#lists.texts(readLiveIds.all, [null, null, null]))
    let from: EndedJobsCursor | null = { ms: this.#knownUntil, jobId: null }
    while (from !== null) {
      const { ids, next }: EndedJobsPage = await readEndedJobs(this.#lists, ADMIN_VIEWER, from, null)
      const unseen = ids.filter((id) => !this.#pushed.hasEnded(id))
      if (unseen.length > 0) await this.#readStates(unseen)
      from = next
    }
    this.#knownUntil = horizon
    this.#pushed.prune(horizon, this.#now())
  }

  close(): void {
    if (this.#delay !== null) clearTimeout(this.#delay)
  }

  #readNamed(): void {
    this.#delay = null
    for (const id of this.#named) this.#changed.add(id)
    this.#named.clear()
    if (this.hasChanges) this.#onDue()
  }

  async #readStates(ids: readonly string[]): Promise<void> {
    const lines = await this.#reader.texts(readCurrentStates, [ids])
    this.#push(lines.map(parseJobEvent))
  }

  #push(states: readonly JobEvent[]): void {
    const newStates = states.filter((state) => this.#pushed.recordIfNew(state))
    if (newStates.length > 0) for (const push of this.#pushes) push(newStates)
  }
}

/** Remembers recent states while reads may return them again. Holds at most twice `MAX_TRACKED`. */
class DedupWindow {
  #recent = new Map<string, number>()
  #previous = new Map<string, number>()
  #rotatedAt: number

  /** @param now current time in ms, on the database's clock like all times in this class. */
  constructor(now: number) {
    this.#rotatedAt = now
  }

  /** Records a state. Returns true if the state is later than the last recorded one of its job. */
  recordIfNew(state: JobEvent): boolean {
    if (this.#rankOf(state.jobId) >= state.seq) return false
    if (this.#recent.size >= MAX_TRACKED) this.#rotate()
    this.#recent.set(state.jobId, rankOf(state))
    return true
  }

  hasEnded(jobId: string): boolean {
    return this.#rankOf(jobId) === ENDED_RANK
  }

  /** Rotates the window if it last rotated before `horizon`, because later reads start there. */
  prune(horizon: number, now: number): void {
    if (this.#rotatedAt >= horizon) return
    this.#rotate()
    this.#rotatedAt = now
  }

  #rankOf(jobId: string): number {
    return this.#recent.get(jobId) ?? this.#previous.get(jobId) ?? -1
  }

  #rotate(): void {
    this.#previous = this.#recent
    this.#recent = new Map()
  }
}
