import { readLiveIds } from '../../sql/jobs/lists.ts'
import { readStates } from '../../sql/jobs.ts'
import type { Reads } from '../../sql/slow-reads.ts'
import { type EndedAfter, type EndedJobs, readEnded, type Viewer } from './ended-jobs.ts'
import { ENDED, type JobEvent, parseLine, rankOf } from './job-event.ts'

// How soon a lost notification is made up for: a crash between storing and notifying loses only the notification.
export const POLL_MS = 5_000
const MAX_TRACKED = 200_000
const EVERYBODY: Viewer = [null, true]

export interface WatchersOptions {
  readonly reader: Reads
  /** Reads what may be long. */
  readonly lists: Reads
  /** The database's time in ms. */
  readonly now: () => number
  /** The time in ms before which jobs have ended visibly, or never will: they end at the time at which a transaction began. */
  readonly settledUntil: () => number
}

/** Watchers of all jobs: they receive the latest state of each changed job, and no state twice. */
export class StateWatchers {
  readonly #reader: Reads
  readonly #lists: Reads
  readonly #now: () => number
  readonly #settledUntil: () => number
  readonly #pushes = new Set<(states: readonly JobEvent[]) => void>()
  readonly #changed = new Set<string>()
  // The states pushed: two notifications may find the same one, and a poll finds most of them again.
  readonly #pushed: DedupWindow
  #missed = false
  #knownUntil = 0

  constructor({ reader, lists, now, settledUntil }: WatchersOptions) {
    this.#reader = reader
    this.#lists = lists
    this.#now = now
    this.#settledUntil = settledUntil
    this.#pushed = new DedupWindow(now())
  }

  /** The time in ms of which the watchers know every end of a job before it; they may have missed later ones. */
  get knownUntil(): number {
    return this.#knownUntil
  }

  get count(): number {
    return this.#pushes.size
  }

  /** Whether there are jobs known to have changed, whose states are still to be read. */
  get hasChanges(): boolean {
    return this.#changed.size > 0
  }

  /** Whether any job may have changed. */
  get hasMissed(): boolean {
    return this.#missed
  }

  /** Returns how to stop. */
  add(push: (states: readonly JobEvent[]) => void): () => void {
    if (this.#pushes.size === 0) this.#knownUntil = this.#settledUntil()
    this.#pushes.add(push)
    return () => this.#pushes.delete(push)
  }

  markChanged(jobId: string): void {
    if (this.#pushes.size > 0) this.#changed.add(jobId)
  }

  markMissed(): void {
    this.#missed = this.#pushes.size > 0
  }

  async readChanged(): Promise<void> {
    const ids = [...this.#changed]
    this.#changed.clear()
    await this.#readStates(ids)
  }

  /** Reads the live jobs, and those that ended since, page by page; what changes meanwhile may be read at the same time. */
  async readMissed(): Promise<void> {
    this.#missed = false
    const settledUntil = this.#settledUntil()
    await this.#readStates(await this.#lists.texts(readLiveIds.all, [null]))
    let from: EndedAfter | null = { ms: this.#knownUntil, jobId: null }
    while (from !== null) {
      const { ids, next }: EndedJobs = await readEnded(this.#lists, EVERYBODY, from)
      const unseen = ids.filter((id) => !this.#pushed.hasEnded(id))
      if (unseen.length > 0) await this.#readStates(unseen)
      from = next
    }
    this.#knownUntil = settledUntil
    this.#pushed.forget(settledUntil, this.#now())
  }

  async #readStates(ids: readonly string[]): Promise<void> {
    const lines = await this.#reader.texts(readStates, [ids])
    const fresh = lines.map(parseLine).filter((state) => this.#pushed.isNew(state))
    if (fresh.length > 0) for (const push of this.#pushes) push(fresh)
  }
}

/** Recent states: kept for as long as reads are repeated, and at most twice `MAX_TRACKED` of them. */
class DedupWindow {
  #recent = new Map<string, number>()
  #previous = new Map<string, number>()
  #rotatedAt: number

  /** @param now the database's time in ms, as all of them. */
  constructor(now: number) {
    this.#rotatedAt = now
  }

  /** Whether this state is later than the last new one of its job. From then on it is not new. */
  isNew(state: JobEvent): boolean {
    if (this.#rankOf(state.jobId) >= state.seq) return false
    if (this.#recent.size >= MAX_TRACKED) this.#rotate()
    this.#recent.set(state.jobId, rankOf(state))
    return true
  }

  hasEnded(jobId: string): boolean {
    return this.#rankOf(jobId) === ENDED
  }

  /** What ended before `until` is not read again. */
  forget(until: number, now: number): void {
    if (this.#rotatedAt >= until) return
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
