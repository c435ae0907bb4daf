import type { ChildProcess } from 'node:child_process'

/** Called with the exit code or the signal of a process; both are null if it did not start. */
export type OnEnd = (code: number | null, signal: NodeJS.Signals | null) => void

/**
 * Calls `onEnd` once the process has ended and all its messages and output have arrived. Calls it asynchronously for a
 * process that failed to start, which emits only `error`.
 */
export function watchEnd(
  child: ChildProcess,
  onEnd: OnEnd,
  onError: (error: Error) => void = () => {},
): void {
  child.on('error', onError)
  if (child.pid === undefined) setImmediate(onEnd, null, null)
  else child.once('close', onEnd)
}

/** Sends a message. Ignores errors, because a process that is gone is reported by `watchEnd`. */
export function sendMessage(child: ChildProcess, message: object): void {
  child.send(message, () => {})
}
