import { setTimeout as delay } from 'node:timers/promises'

// What is about to be true is seen at once; what takes seconds is not asked for a hundred times in each.
const FIRST_MS = 5
const LAST_MS = 40

/** Looks until a condition holds, at first every 5 ms, later every 40; the value it held with. Fails with `what` after the deadline in ms. */
export async function until<T>(
  what: string,
  condition: () => T | Promise<T>,
  deadlineMs = 30_000,
): Promise<Exclude<T, null | undefined | false>> {
  const end = Date.now() + deadlineMs
  for (let restMs = FIRST_MS; ; restMs = Math.min(restMs * 1.3, LAST_MS)) {
    const value = await condition()
    if (value !== null && value !== undefined && value !== false)
      return value as Exclude<T, null | undefined | false>
    if (Date.now() > end) throw new Error(`Not within ${deadlineMs} ms: ${what}`)
    await delay(restMs)
  }
}

/** Keeps this thread from everything else, as a computation does, but leaves the processor to others. */
export const standStill = (ms: number): void =>
  void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
