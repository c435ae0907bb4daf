import { setTimeout as delay } from 'node:timers/promises'

// Storing several pages takes hardly longer than storing one, so a short wait for more is worthwhile.
const GATHER_DELAY_MS = 10

/**
 * Reads pages concurrently and stores them in order, while it reads the next ones. At most `maxInFlight()` pages are
 * being read and as many are being stored, which bounds the loss in a crash. Stores pages together if they are ready at
 * the same time. If a page fails, stores all pages before it, then throws the error.
 */
export async function readInOrder<T>(
  pages: readonly number[],
  maxInFlight: () => number,
  signal: AbortSignal,
  read: (page: number) => Promise<T>,
  store: (ready: readonly T[]) => Promise<void>,
): Promise<void> {
  const inFlight: PendingPage<T>[] = []
  let storing: Promise<void> = Promise.resolve()
  try {
    for (let next = 0; next < pages.length || inFlight.length > 0; ) {
      signal.throwIfAborted()
      while (inFlight.length < maxInFlight() && next < pages.length)
        inFlight.push(trackPage(read(pages[next++]!)))
      await inFlight[0]!.promise
      await Promise.race([Promise.allSettled(inFlight.map(({ promise }) => promise)), delay(GATHER_DELAY_MS)])
      await storing
      const unfinished = inFlight.findIndex(({ value }) => value === undefined)
      const ready = inFlight.splice(0, unfinished === -1 ? inFlight.length : unfinished)
      storing = store(ready.map(({ value }) => value!))
      storing.catch(() => {}) // The next `await storing` throws the error.
    }
  } finally {
    await storing
  }
}

interface PendingPage<T> {
  readonly promise: Promise<T>
  value: T | undefined
}

function trackPage<T>(promise: Promise<T>): PendingPage<T> {
  const page: PendingPage<T> = { promise, value: undefined }
  promise.then(
    (value) => {
      page.value = value
    },
    () => {}, // `readInOrder` throws the error when this page is next to be stored.
  )
  return page
}
