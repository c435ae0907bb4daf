/** The protocol between a supervisor and its child processes. */

/**
 * Exit status of a process that cannot start until an operator fixes the cause. The supervisor does not restart such a
 * process.
 */
export const START_REFUSED_STATUS = 2

/**
 * Environment variable of supervised processes. It tells a child that it has a supervisor, even if the supervisor died
 * while the child loaded its modules.
 */
export const SUPERVISED_VARIABLE = 'MILLRACE_SUPERVISED'

/**
 * Calls `callback` once the supervisor of this process is gone, even after a crash. Does nothing in a process without a
 * supervisor. Does not keep the process alive.
 */
export function onSupervisorGone(callback: () => void): void {
  if (process.env[SUPERVISED_VARIABLE] === undefined) return
  if (!process.connected) return void setImmediate(callback)
  process.once('disconnect', callback)
  process.channel?.unref()
}
