import { isTerminal, type JobEvent } from './job-event.ts'
import { JobWatchers } from './job-watchers.ts'
import { POLL_MS, StateWatchers, type WatchersOptions } from './state-watchers.ts'

/**
 * Fans the ledger's events out to the subscribers in this process. A notification only says where to look; what is
 * delivered is read from the table, after each subscriber's cursor: in order and without gaps, however many
 * notifications arrived or were lost.
 */
export interface Hub {
  /** Pushes events of a job after a cursor, in batches, beginning with those already stored. Returns how to stop. */
  watchJob(jobId: string, after: number, push: (events: readonly JobEvent[]) => void): () => void
  /** Pushes each new state of any job. Returns how to stop. */
  watchAll(push: (states: readonly JobEvent[]) => void): () => void
  /** The time in ms of which watchers of all jobs have been told every end before it. */
  readonly knownUntil: number
  /** Handles a payload of the channel `job_events`; null after a reconnect, when anything may have been missed. */
  notified(payload: string | null): void
  /** The job's terminal event, or null if it does not come in time. */
  terminal(jobId: string, waitMs: number, signal?: AbortSignal): Promise<JobEvent | null>
  /** Ends every wait for a terminal event, as if its time were up; none begins any more. */
  stopWaiting(): void
  readonly watchers: number
  close(): void
}

export interface HubOptions extends WatchersOptions {
  /** Gets read errors; a later read makes up for a failed one. */
  readonly onError: (error: unknown) => void
}

export function createHub(options: HubOptions): Hub {
  return new LedgerHub(options)
}

/**
 * Two loops that read for all subscribers, one read at a time each, until nothing is left to read: what has changed, and
 * what may have been missed, which can take long.
 */
class LedgerHub implements Hub {
  readonly #jobs: JobWatchers
  readonly #states: StateWatchers
  readonly #onError: (error: unknown) => void
  /** Functions that give up a wait for a terminal event. */
  readonly #waiting = new Set<() => void>()
  #waitsNoMore = false
  readonly #poll: NodeJS.Timeout
  #isReading = false
  #isCatchingUp = false

  constructor(options: HubOptions) {
    this.#jobs = new JobWatchers(options.reader)
    this.#states = new StateWatchers(options)
    this.#onError = options.onError
    this.#poll = setInterval(() => this.#readEverything(), POLL_MS).unref()
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

  notified(payload: string | null): void {
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

  terminal(jobId: string, waitMs: number, signal?: AbortSignal): Promise<JobEvent | null> {
    if (this.#waitsNoMore) return Promise.resolve(null)
    return new Promise((resolve) => {
      const finish = (event: JobEvent | null): void => {
        clearTimeout(timer)
        this.#waiting.delete(giveUp)
        stop()
        signal?.removeEventListener('abort', giveUp)
        resolve(event)
      }
      const giveUp = (): void => finish(null)
      const timer = setTimeout(giveUp, waitMs)
      this.#waiting.add(giveUp)
      const stop = this.watchJob(jobId, 0, (events) => {
        const last = events.find(isTerminal)
        if (last !== undefined) finish(last)
      })
      signal?.addEventListener('abort', giveUp)
      if (signal?.aborted) giveUp()
    })
  }

  stopWaiting(): void {
    this.#waitsNoMore = true
    for (const giveUp of this.#waiting) giveUp()
  }

  get watchers(): number {
    return this.#jobs.count + this.#states.count
  }

  close(): void {
    clearInterval(this.#poll)
  }

  /** Any notification may have been lost. */
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
      // The next notification or poll reads again from the same cursors.
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
