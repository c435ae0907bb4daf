/**
 * Limits work that is usually cheap but may become expensive: it runs as often as wanted while it is cheap, and
 * otherwise as often as its share of the time allows.
 */
export interface CostThrottle {
  readonly ready: boolean
  /** Runs the work and records how long it took; what fails, such as in an outage, costs nothing. */
  run<T>(work: () => Promise<T>): Promise<T>
}

/** @param share of the time, below 1. */
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
      nextAt = endedAt + (endedAt - startedAt) * (1 / share - 1)
      return result
    },
  }
}
