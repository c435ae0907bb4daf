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
  let storing: Promise<void> | null = null
  const next = (): Promise<void> | null => {
    storing ??=
      store()
        ?.then(() => {}, onError)
        .finally(() => {
          storing = null
        }) ?? null
    return storing
  }
  const timer = setInterval(next, storeMs).unref()
  return async () => {
    clearInterval(timer)
    await storing
    await next()
  }
}
