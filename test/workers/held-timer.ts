import type { TestContext } from 'node:test'

/** A timer that goes off when the test says so, and never by itself: however slow a machine is, it is not late. */
export interface HeldTimer {
  goOff(): void
  /** How often it was started anew. */
  readonly restarts: number
}

/** Holds the timers of this many ms until the test ends; the last one that was started is the one that goes off. */
export function holdTimer(t: TestContext, ms: number): HeldTimer {
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
