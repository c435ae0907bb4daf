import { setImmediate as nextTurn } from 'node:timers/promises'
import { MAX_EVENTS_PER_READ, readEventsAfter } from '../../sql/jobs/jobs.ts'
import type { Reads } from '../../sql/reads/slow-reads.ts'
import { groupByJob, type JobEvent, parseJobEvent } from './job-event.ts'

// Maximum time in ms of a delivery before it yields to requests. Each watcher costs 14 µs, and there may be thousands.
const MAX_TURN_MS = 0.25

/** A watcher of one job. `after` is the seq of the last event that it received. */
interface JobWatcher {
  after: number
  readonly push: (events: readonly JobEvent[]) => void
}

/** Watchers of single jobs. Each receives every event after its cursor. */
export class JobWatchers {
  readonly #reader: Reads
  readonly #byJob = new Map<string, Set<JobWatcher>>()
  readonly #changed = new Set<string>()
  #count = 0

  constructor(reader: Reads) {
    this.#reader = reader
  }

  get count(): number {
    return this.#count
  }

  /** True if there are changed jobs whose events must be read. */
  get hasChanges(): boolean {
    return this.#changed.size > 0
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

  async readChanged(): Promise<void> {
    const cursors = this.#collectCursors()
    if (cursors.size === 0) return
    const lines = await this.#reader.texts(readEventsAfter, [[...cursors.keys()], [...cursors.values()]])
    let turnEnds = performance.now() + MAX_TURN_MS
    for (const events of groupByJob(lines.map(parseJobEvent))) {
      const { jobId } = events[0]!
      if (events.length === MAX_EVENTS_PER_READ) this.#changed.add(jobId)
      for (const watcher of this.#byJob.get(jobId) ?? []) {
        deliverUnseenEvents(watcher, cursors.get(jobId)!, events)
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

/**
 * Delivers the events that a watcher has not received. `from` is the seq after which the events were read. A watcher
 * that joined during the read with a lower cursor is skipped, because its own read follows.
 */
function deliverUnseenEvents(watcher: JobWatcher, from: number, events: readonly JobEvent[]): void {
  if (watcher.after < from) return
  const unseen = events[0]!.seq > watcher.after ? events : events.filter(({ seq }) => seq > watcher.after)
  if (unseen.length === 0) return
  watcher.after = unseen[unseen.length - 1]!.seq
  watcher.push(unseen)
}
