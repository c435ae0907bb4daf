import { setTimeout as delay } from 'node:timers/promises'

// Intervals between checks in ms. The first one detects quick changes soon; the last one saves CPU time when a
// condition takes seconds.
const MIN_POLL_INTERVAL_MS = 5
const MAX_POLL_INTERVAL_MS = 40

/**
 * Checks a condition until it is truthy, first every 5 ms, later every 40 ms. Returns its value. @throws an error that
 * names `what`, after `deadlineMs`.
 */
export async function until<T>(
  what: string,
  condition: () => T | Promise<T>,
  deadlineMs = 30_000,
): Promise<Exclude<T, null | undefined | false>> {
  const end = Date.now() + deadlineMs
  for (let restMs = MIN_POLL_INTERVAL_MS; ; restMs = Math.min(restMs * 1.3, MAX_POLL_INTERVAL_MS)) {
    const value = await condition()
    if (value !== null && value !== undefined && value !== false)
      return value as Exclude<T, null | undefined | false>
    if (Date.now() > end) throw new Error(`Not within ${deadlineMs} ms: ${what}`)
    await delay(restMs)
  }
}

/** Blocks this thread without using CPU time. */
export const blockThread = (ms: number): void =>
  void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
