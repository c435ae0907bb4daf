/** Work that runs at intervals, never twice at the same time. */
export interface Periodic {
  /** Runs the work now, or joins the current run. Never rejects. Returns null if there is nothing to do. */
  runNow(): Promise<void> | null
  /** Runs the work now, or once more after the current run. */
  request(): void
  /** Stops the timer; resolves once no run is under way. */
  stop(): Promise<void>
}

/**
 * Runs work at intervals.
 * @param work starts a run, or returns null if there is nothing to do.
 */
export function runPeriodically(
  everyMs: number,
  work: () => Promise<unknown> | null,
  onError: (error: unknown) => void,
): Periodic {
  let running: Promise<void> | null = null
  let isRequested = false
  let isStopped = false
  const now = (): Promise<void> | null => {
    running ??=
      work()
        ?.then(() => {}, onError)
        .finally(() => {
          running = null
          if (isRequested && !isStopped) request()
        }) ?? null
    return running
  }
  const request = (): void => {
    if (isStopped) return
    isRequested = running !== null
    if (running === null) void now()
  }
  const timer = setInterval(now, everyMs).unref()
  return {
    runNow: now,
    request,
    stop: async () => {
      isStopped = true
      clearInterval(timer)
      await running
    },
  }
}

/**
 * Stores collected data at intervals, never twice at the same time, and the rest at the end. A failed write is not
 * retried, because the database may have committed it. `store` takes the collected data and starts to store it, or
 * returns null if there is none. The returned function stops the timer and stores the rest; it never rejects.
 */
export function storePeriodically(
  storeMs: number,
  store: () => Promise<unknown> | null,
  onError: (error: unknown) => void,
): () => Promise<void> {
  const { runNow: now, stop } = runPeriodically(storeMs, store, onError)
  return async () => {
    await stop()
    await now()
  }
}
