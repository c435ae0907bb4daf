import type { TestContext } from 'node:test'

/** Timer that fires only when the test says so, and therefore never late on a slow machine. */
export interface HeldTimer {
  goOff(): void
  /** Number of restarts so far. */
  readonly restarts: number
}

/** Holds all timers of exactly `ms` milliseconds until the test ends. `goOff` fires the newest one. */
export function holdTimers(t: TestContext, ms: number): HeldTimer {
  const start = globalThis.setTimeout as unknown as (...given: unknown[]) => NodeJS.Timeout
  const held = { goOff: () => {}, restarts: 0 }
  const timer = { refresh: () => void held.restarts++ }
  t.mock.method(globalThis, 'setTimeout', (run: () => void, after?: number, ...values: unknown[]) => {
    if (after !== ms) return start(run, after, ...values)
    held.goOff = run
    return timer
  })
  return held
}
