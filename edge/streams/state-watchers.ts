import { readLiveIds } from '../../sql/jobs/lists.ts'
import { readStates } from '../../sql/jobs.ts'
import type { Reads } from '../../sql/slow-reads.ts'
import { type EndedAfter, type EndedJobs, readEnded, type Viewer } from '../pipeline/ended.ts'
import { ENDED, type JobEvent, parseLine, rankOf } from './job-event.ts'

// How soon a lost notification is made up for: a crash between storing and notifying loses only the notification.
export const POLL_MS = 5_000
// A job's end has the time at which its transaction began.
export const OVERLAP_MS = 1_000
const TRACKED_MS = POLL_MS + 2 * OVERLAP_MS
const MAX_TRACKED = 200_000
const EVERYBODY: Viewer = [null, true]

/** Watchers of all jobs: they receive the latest state of each changed job, and no state twice. */
export class StateWatchers {
  readonly #reader: Reads
  readonly #lists: Reads
  readonly #now: () => number
  readonly #pushes = new Set<(states: readonly JobEvent[]) => void>()
  readonly #changed = new Set<string>()
  // The states pushed: two notifications may find the same one, and a poll finds most of them again.
  readonly #pushed = new DedupWindow()
  // The watchers may have missed what came after `#knownUntil`, in ms.
  #missed = false
  #knownUntil = 0

  /** @param lists reads what may be long. @param now the database's time in ms, which jobs end by. */
  constructor(reader: Reads, lists: Reads, now: () => number) {
    this.#reader = reader
    this.#lists = lists
    this.#now = now
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
    if (this.#pushes.size === 0) this.#knownUntil = this.#now()
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
    const startedAt = this.#now()
    await this.#readStates(await this.#lists.texts(readLiveIds.all, [null]))
    let from: EndedAfter | null = { ms: this.#knownUntil - OVERLAP_MS, jobId: null }
    while (from !== null) {
      const { ids, next }: EndedJobs = await readEnded(this.#lists, EVERYBODY, from)
      const unseen = ids.filter((id) => !this.#pushed.hasEnded(id))
      if (unseen.length > 0) await this.#readStates(unseen)
      from = next
    }
    this.#knownUntil = startedAt
  }

  async #readStates(ids: readonly string[]): Promise<void> {
    const lines = await this.#reader.texts(readStates, [ids])
    const fresh = lines.map(parseLine).filter((state) => this.#pushed.isNew(state))
    if (fresh.length > 0) for (const push of this.#pushes) push(fresh)
  }
}

/** Recent states: kept for longer than repeated reads reach back, and at most twice `MAX_TRACKED` of them. */
class DedupWindow {
  #recent = new Map<string, number>()
  #previous = new Map<string, number>()
  #rotatedAt = performance.now()

  /** Whether this state is later than the last new one of its job. From then on it is not new. */
  isNew(state: JobEvent): boolean {
    if (this.#rankOf(state.jobId) >= state.seq) return false
    if (performance.now() - this.#rotatedAt > TRACKED_MS || this.#recent.size >= MAX_TRACKED) this.#rotate()
    this.#recent.set(state.jobId, rankOf(state))
    return true
  }

  hasEnded(jobId: string): boolean {
    return this.#rankOf(jobId) === ENDED
  }

  #rankOf(jobId: string): number {
    return this.#recent.get(jobId) ?? this.#previous.get(jobId) ?? -1
  }

  #rotate(): void {
    this.#previous = this.#recent
    this.#recent = new Map()
    this.#rotatedAt = performance.now()
  }
}
