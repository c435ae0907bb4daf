import { setTimeout as delay } from 'node:timers/promises'

// Storing several pages together takes hardly longer than storing one: worth a short wait for the next ones.
const GATHER_MS = 10

/**
 * Reads pages concurrently and stores them in order, the next ones being read meanwhile. At most `inHand` of them are begun, and
 * as many are being stored: that is what a crash costs. Pages that are ready together are stored together. A failure is
 * thrown once all pages before it are stored.
 */
export async function inOrder<T>(
  pages: readonly number[],
  inHand: () => number,
  signal: AbortSignal,
  read: (page: number) => Promise<T>,
  store: (ready: readonly T[]) => Promise<void>,
): Promise<void> {
  const begun: Begun<T>[] = []
  let storing: Promise<void> = Promise.resolve()
  try {
    for (let next = 0; next < pages.length || begun.length > 0; ) {
      signal.throwIfAborted()
      while (begun.length < inHand() && next < pages.length) begun.push(begin(read(pages[next++]!)))
      await begun[0]!.promise
      await Promise.race([Promise.allSettled(begun.map(({ promise }) => promise)), delay(GATHER_MS)])
      await storing
      const unfinished = begun.findIndex(({ value }) => value === undefined)
      const ready = begun.splice(0, unfinished === -1 ? begun.length : unfinished)
      storing = store(ready.map(({ value }) => value!))
      storing.catch(() => {}) // Thrown when it is waited for.
    }
  } finally {
    await storing
  }
}

interface Begun<T> {
  readonly promise: Promise<T>
  value: T | undefined
}

function begin<T>(promise: Promise<T>): Begun<T> {
  const begun: Begun<T> = { promise, value: undefined }
  promise.then(
    (value) => {
      begun.value = value
    },
    () => {}, // Thrown when its turn comes, if it comes.
  )
  return begun
}
