import { getPriority, setPriority } from 'node:os'
import { parentPort } from 'node:worker_threads'
import type { ThreadReply, ThreadRequest, ThreadResult } from './messages.ts'

/** Handles each request sent to this thread, at a low priority. */
export function serveRequests(handle: (request: ThreadRequest) => Promise<ThreadResult>): void {
  // On Linux, pid 0 means only this thread (setpriority(2)), but elsewhere the whole process. At a lower priority,
  // reads preempt a hash instead of waiting for it. Five levels lower, a hash still gets a quarter of a busy core.
  if (process.platform === 'linux') setPriority(0, Math.min(getPriority(0) + 5, 19))
  parentPort!.on('message', async (request: ThreadRequest) => {
    const reply: ThreadReply = await handle(request).then(
      (result) => ({ result }),
      (error) => ({ error: String(error) }),
    )
    parentPort!.postMessage(reply)
  })
}
