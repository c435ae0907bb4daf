import type { Database } from '../../sql/db.ts'
import {
  addTallies,
  HISTOGRAM_BOUNDS,
  type Tally,
  type TallyOutcome,
  type WorkerCounter,
} from '../../sql/jobs/tallies.ts'
import type { Log } from './log.ts'
import { storePeriodically } from './periodic.ts'

/** Counts finished attempts and other events of this process, and adds them to the statistics of all workers. */
export interface Tallies {
  countAttempt(attempt: EndedAttempt): void
  count(counter: WorkerCounter): void
  /** Stores the remaining counts. Never rejects. */
  close(): Promise<void>
}

export interface EndedAttempt {
  readonly queue: string
  readonly name: string
  readonly outcome: TallyOutcome
  readonly runSeconds: number
  /** Time between the due time and the claim. */
  readonly waitSeconds: number
}

// Shorter than the shortest time span of the statistics, 10 s.
const STORE_MS = 2_000

interface MutableTally extends Omit<Tally, 'attempts' | 'run_seconds' | 'wait_seconds'> {
  attempts: number
  run_seconds: number
  wait_seconds: number
  readonly runs: number[]
  readonly waits: number[]
}

export function createTallies(db: Database, log: Log, storeMs = STORE_MS): Tallies {
  return new StoredTallies(db, log, storeMs)
}

class StoredTallies implements Tallies {
  readonly close: () => Promise<void>
  readonly #db: Database
  #tallies = new Map<string, MutableTally>()
  #counters: Partial<Record<WorkerCounter, number>> = {}

  constructor(db: Database, log: Log, storeMs: number) {
    this.#db = db
    this.close = storePeriodically(
      storeMs,
      () => this.#store(),
      (error) => log.warn({ err: error }, 'Failed to store job statistics'),
    )
  }

  countAttempt({ queue, name, outcome, runSeconds, waitSeconds }: EndedAttempt): void {
    const key = `${name} ${outcome}`
    let tally = this.#tallies.get(key)
    if (tally === undefined) {
      tally = {
        queue,
        name,
        outcome,
        attempts: 0,
        run_seconds: 0,
        wait_seconds: 0,
        runs: createBuckets(),
        waits: createBuckets(),
      }
      this.#tallies.set(key, tally)
    }
    tally.attempts++
    tally.run_seconds += runSeconds
    tally.wait_seconds += waitSeconds
    tally.runs[bucketOf(runSeconds)]!++
    tally.waits[bucketOf(waitSeconds)]!++
  }

  count(counter: WorkerCounter): void {
    this.#counters[counter] = (this.#counters[counter] ?? 0) + 1
  }

  /**
   * Starts to store the counts. A failed write drops its counts: it may have been committed, and nothing is counted
   * twice.
   */
  #store(): Promise<unknown> | null {
    if (this.#tallies.size === 0 && Object.keys(this.#counters).length === 0) return null
    const [tallies, counters] = [[...this.#tallies.values()], this.#counters]
    this.#tallies = new Map()
    this.#counters = {}
    return this.#db.run(addTallies(tallies, counters))
  }
}

const createBuckets = (): number[] => new Array(HISTOGRAM_BOUNDS.length + 1).fill(0)

/** Returns the index of the first of `HISTOGRAM_BOUNDS` that the time does not exceed, or `HISTOGRAM_BOUNDS.length`. */
export function bucketOf(seconds: number): number {
  let [low, high] = [0, HISTOGRAM_BOUNDS.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (seconds <= HISTOGRAM_BOUNDS[middle]!) high = middle
    else low = middle + 1
  }
  return low
}
