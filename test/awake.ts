/** Measures time without the pauses of the machine: a virtual machine may stop for minutes, and everything in it. */

const TICK_MS = 500
// A busy machine delays a tick by less.
const MAX_TICK_MS = 5000

let awake = 0
let last = performance.now()

const tick = (): void => {
  const now = performance.now()
  awake += Math.min(now - last, MAX_TICK_MS)
  last = now
}
setInterval(tick, TICK_MS).unref()

/** Returns the time in ms since the start of the process, without pauses. */
export function getAwakeMs(): number {
  tick()
  return awake
}
