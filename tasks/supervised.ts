/** What a supervisor and its child processes know of each other. */

/** The status of a process that can't start until somebody acts: it is no use to start it again. */
export const START_REFUSED = 2

/** Tells a child process that it has a supervisor, whose death it might otherwise miss while loading its modules. */
export const SUPERVISED = 'MILLRACE_SUPERVISED'

/**
 * For child processes: calls back once when the supervisor is gone, however it died; never in a process started by
 * hand, which has none. Doesn't keep the process alive.
 */
export function onParentGone(callback: () => void): void {
  if (process.env[SUPERVISED] === undefined) return
  if (!process.connected) return void setImmediate(callback)
  process.once('disconnect', callback)
  process.channel?.unref()
}
