/**
 * Work that is cheap as a rule, and may become dear: it is done as often as wanted while it is cheap, and else as often as
 * its share of the time allows.
 */
export interface Pace {
  readonly due: boolean
  /** Does it, and notes how long it took. */
  spend<T>(work: () => Promise<T>): Promise<T>
}

/** @param share of the time, below 1. */
export function createPace(share: number, now: () => number = () => performance.now()): Pace {
  let nextAt = Number.NEGATIVE_INFINITY
  return {
    get due() {
      return now() >= nextAt
    },
    spend: async (work) => {
      const startedAt = now()
      try {
        return await work()
      } finally {
        const endedAt = now()
        nextAt = endedAt + (endedAt - startedAt) * (1 / share - 1)
      }
    },
  }
}
