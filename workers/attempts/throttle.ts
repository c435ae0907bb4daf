/**
 * Limits work that is usually cheap but may become expensive: it runs as often as wanted while it is cheap, and
 * otherwise as often as its share of the time allows.
 */
export interface CostThrottle {
  readonly ready: boolean
  /** Runs the work and records how long it took; what fails, such as in an outage, costs nothing. */
  run<T>(work: () => Promise<T>): Promise<T>
}

// What waited, such as for a lock, looks as if it had cost that much, but the next run may be needed soon.
const MAX_MS = 10_000

/** @param share of the time, below 1; the pause after a run is 10 s at most. */
export function createCostThrottle(share: number, now: () => number = () => performance.now()): CostThrottle {
  let nextAt = Number.NEGATIVE_INFINITY
  return {
    get ready() {
      return now() >= nextAt
    },
    run: async (work) => {
      const startedAt = now()
      const result = await work()
      const endedAt = now()
      nextAt = endedAt + Math.min(MAX_MS, (endedAt - startedAt) * (1 / share - 1))
      return result
    },
  }
}
