/**
 * Limits work that is usually cheap but may become expensive. Cheap work runs whenever wanted, expensive work only for
 * its share of the time.
 */
export interface CostThrottle {
  /** True if the pause after the last run is over. */
  readonly isReady: boolean
  /** Runs the work and sets the pause according to its duration. A failed run causes no pause. */
  run<T>(work: () => Promise<T>): Promise<T>
}

// Limits the pause: a run that only waited for a lock looks expensive, but the next run may be needed soon.
const MAX_PAUSE_MS = 10_000

/**
 * Creates a throttle.
 * @param share fraction of the time that runs may take, below 1. A pause lasts at most 10 s.
 */
export function createCostThrottle(share: number, now: () => number = () => performance.now()): CostThrottle {
  let nextAt = Number.NEGATIVE_INFINITY
  return {
    get isReady() {
      return now() >= nextAt
    },
    run: async (work) => {
      const startedAt = now()
      const result = await work()
      const endedAt = now()
      nextAt = endedAt + Math.min(MAX_PAUSE_MS, (endedAt - startedAt) * (1 / share - 1))
      return result
    },
  }
}
