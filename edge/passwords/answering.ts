import { getPriority, setPriority } from 'node:os'
import { parentPort } from 'node:worker_threads'
import type { Reply, Result, Work } from './work.ts'

/** Answers each piece of work that this thread is sent, at a low priority. */
export function answerWork(resultOf: (work: Work) => Promise<Result>): void {
  // On Linux, 0 is this thread alone (setpriority(2)); elsewhere it would be the whole process. Reads then do not wait
  // for their turn behind a hash, but take the core from it. Five levels lower, a hash still gets a quarter of a core
  // that another thread wants all of.
  if (process.platform === 'linux') setPriority(0, Math.min(getPriority(0) + 5, 19))
  parentPort!.on('message', async (work: Work) => {
    const reply: Reply = await resultOf(work).then(
      (result) => ({ result }),
      (error) => ({ error: String(error) }),
    )
    parentPort!.postMessage(reply)
  })
}
