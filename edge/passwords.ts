import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import type { PasswordAnswer, PasswordCost, PasswordWork } from './passwords/work.ts'

/**
 * Hashes and compares passwords, about 22 ms of a core each, on threads of their own that give way to everything else.
 * Only one per two cores runs at a time, or a burst of logins would starve the rest of the machine.
 */
export interface Passwords {
  hash(password: string): Promise<string>
  /** Compares with a stored hash; without one the same work is done for nothing, so that both take as long. */
  verify(stored: string | null, password: string): Promise<boolean>
  close(): Promise<void>
}

interface Task {
  readonly work: PasswordWork
  readonly resolve: (result: string | boolean) => void
  readonly reject: (error: Error) => void
}

const THREAD = new URL('./passwords/thread.ts', import.meta.url)

export interface PasswordOptions {
  /** Threads at most. Default one per two cores. */
  readonly concurrency?: number
  readonly cost?: PasswordCost
}

// 19 MiB and two passes (OWASP Password Storage Cheat Sheet).
const COST: PasswordCost = { memoryCost: 19_456, timeCost: 2 }

/** The threads start with the first password that needs them. */
export function createPasswords(options: PasswordOptions = {}): Passwords {
  const { concurrency = Math.max(1, Math.floor(availableParallelism() / 2)), cost = COST } = options
  const waiting: Task[] = []
  const idle: Worker[] = []
  const busy = new Map<Worker, Task>()

  const next = (worker: Worker): void => {
    const task = waiting.shift()
    if (task === undefined) {
      idle.push(worker)
      // Nothing but work keeps a process alive.
      worker.unref()
      return
    }
    busy.set(worker, task)
    worker.ref()
    worker.postMessage(task.work)
  }

  const start = (): Worker => {
    const worker = new Worker(THREAD, { workerData: cost })
    worker.on('message', (answer: PasswordAnswer) => {
      const task = busy.get(worker)
      busy.delete(worker)
      if ('error' in answer) task?.reject(new Error(answer.error))
      else task?.resolve(answer.result)
      next(worker)
    })
    const lost = (error: Error): void => {
      if (idle.includes(worker)) idle.splice(idle.indexOf(worker), 1)
      busy.get(worker)?.reject(error)
      busy.delete(worker)
      if (waiting.length > 0 && busy.size < concurrency) next(start())
    }
    worker.on('error', lost)
    worker.on('exit', () => lost(new Error('The thread that hashes passwords has ended')))
    return worker
  }

  const run = (work: PasswordWork): Promise<string | boolean> =>
    new Promise((resolve, reject) => {
      waiting.push({ work, resolve, reject })
      const free = idle.pop()
      if (free !== undefined) next(free)
      else if (busy.size < concurrency) next(start())
    })

  const hash = (password: string): Promise<string> => run({ password }) as Promise<string>
  let decoy: Promise<string> | null = null
  return {
    hash,
    verify: async (stored, password) => {
      decoy ??= hash('no account has this password')
      const matches = await run({ password, against: stored ?? (await decoy) })
      return stored !== null && matches === true
    },
    close: async () => {
      waiting.length = 0
      await Promise.all([...idle.splice(0), ...busy.keys()].map((worker) => worker.terminate()))
    },
  }
}
