import { isTerminal, type JobEvent } from './job-event.ts'
import { JobWatchers } from './job-watchers.ts'
import { POLL_INTERVAL_MS, StateWatchers, type WatchersOptions } from './state-watchers.ts'

/**
 * Delivers the ledger's events to the subscribers in this process. A notification only triggers a read of the table
 * after each subscriber's cursor. So delivery is in order and without gaps, even if notifications are lost or repeated.
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
  /** Handles a payload of the channel `job_events`. Null means a reconnect, which may have lost any notification. */
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
    this.#states = new StateWatchers(options)
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
    for (const id of payload.split(' ')) {
      this.#jobs.markChanged(id)
      this.#states.markChanged(id)
    }
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
