/** The protocol between a supervisor and its child processes. */

/** Exit status of a process that can't start until an operator acts; the supervisor does not restart it. */
export const START_REFUSED_STATUS = 2

/**
 * Environment variable of supervised processes. A child needs it to notice a supervisor that died while modules were
 * loading.
 */
export const SUPERVISED_VARIABLE = 'MILLRACE_SUPERVISED'

/**
 * Calls `callback` once the supervisor of this process is gone, however it died. Does nothing in a process without a
 * supervisor. Does not keep the process alive.
 */
export function onParentGone(callback: () => void): void {
  if (process.env[SUPERVISED_VARIABLE] === undefined) return
  if (!process.connected) return void setImmediate(callback)
  process.once('disconnect', callback)
  process.channel?.unref()
}
