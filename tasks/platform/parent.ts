import { Worker } from 'node:worker_threads'

// Runs in a thread, because a busy main thread does not notice the death of the parent.
const PARENT_WATCHER_SCRIPT = `
  const { workerData: parent } = require('node:worker_threads')
  setInterval(() => process.ppid === parent || process.kill(process.pid, 'SIGKILL'), 500)`

/**
 * Makes this child process end with its parent, even while it is busy. Ignores signals that a terminal or a service
 * manager sends to all processes, because the parent decides when its children end.
 */
export function endWithParent(): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
  process.on('disconnect', () => process.exit())
  new Worker(PARENT_WATCHER_SCRIPT, {
    eval: true,
    workerData: process.ppid,
    resourceLimits: { maxOldGenerationSizeMb: 16 },
  }).unref()
}
