/** Work that is done at intervals, never twice at the same time. */
export interface Periodic {
  /** Does it now, unless it is under way; resolves when it is done. Never rejects. */
  now(): Promise<void> | null
  /** Ends the intervals; resolves when nothing is under way. */
  stop(): Promise<void>
}

/** @param work begins it; null: there is nothing to do. */
export function periodically(
  everyMs: number,
  work: () => Promise<unknown> | null,
  onError: (error: unknown) => void,
): Periodic {
  let working: Promise<void> | null = null
  const now = (): Promise<void> | null => {
    working ??=
      work()
        ?.then(() => {}, onError)
        .finally(() => {
          working = null
        }) ?? null
    return working
  }
  const timer = setInterval(now, everyMs).unref()
  return {
    now,
    stop: async () => {
      clearInterval(timer)
      await working
    },
  }
}

/**
 * Stores what this process gathers: at intervals, never twice at the same time, and the rest at the end. A write that failed is
 * not repeated, since it may have been committed.
 *
 * @param store takes what was gathered and begins to store it; null: there is nothing.
 * @returns what ends it, once the rest is stored. Never rejects.
 */
export function storePeriodically(
  storeMs: number,
  store: () => Promise<unknown> | null,
  onError: (error: unknown) => void,
): () => Promise<void> {
  const { now, stop } = periodically(storeMs, store, onError)
  return async () => {
    await stop()
    await now()
  }
}
