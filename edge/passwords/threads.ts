import { Worker } from 'node:worker_threads'
import type { Reply, Result, Work } from './work.ts'

interface Task {
  readonly work: Work
  readonly resolve: (result: Result) => void
  readonly reject: (error: Error) => void
}

/** Threads of one kind, which do one piece of work each at a time, in order. They start on first use. */
export class Threads {
  readonly #file: URL
  readonly #concurrency: number
  readonly #workerData: unknown
  readonly #waiting: Task[] = []
  readonly #idle: Worker[] = []
  readonly #busy = new Map<Worker, Task>()

  constructor(file: URL, concurrency: number, workerData?: unknown) {
    this.#file = file
    this.#concurrency = concurrency
    this.#workerData = workerData
  }

  /** The number of tasks that wait for a thread. */
  get waiting(): number {
    return this.#waiting.length
  }

  run(work: Work): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ work, resolve, reject })
      const free = this.#idle.pop()
      if (free !== undefined) this.#next(free)
      else if (this.#busy.size < this.#concurrency) this.#next(this.#start())
    })
  }

  async close(): Promise<void> {
    this.#waiting.length = 0
    const workers = [...this.#idle.splice(0), ...this.#busy.keys()]
    await Promise.all(workers.map((worker) => worker.terminate()))
  }

  #start(): Worker {
    const worker = new Worker(this.#file, { workerData: this.#workerData })
    worker.on('message', (reply: Reply) => this.#answered(worker, reply))
    worker.on('error', (error) => this.#lost(worker, error))
    worker.on('exit', () => this.#lost(worker, new Error('A password hashing thread has exited')))
    return worker
  }

  /** Gives a thread the oldest waiting task. */
  #next(worker: Worker): void {
    const task = this.#waiting.shift()
    if (task === undefined) {
      this.#idle.push(worker)
      // An idle thread must not keep the process alive.
      worker.unref()
      return
    }
    this.#busy.set(worker, task)
    worker.ref()
    worker.postMessage(task.work)
  }

  #answered(worker: Worker, reply: Reply): void {
    const task = this.#busy.get(worker)
    this.#busy.delete(worker)
    if ('error' in reply) task?.reject(new Error(reply.error))
    else task?.resolve(reply.result)
    this.#next(worker)
  }

  #lost(worker: Worker, error: Error): void {
    if (this.#idle.includes(worker)) this.#idle.splice(this.#idle.indexOf(worker), 1)
    this.#busy.get(worker)?.reject(error)
    this.#busy.delete(worker)
    if (this.#waiting.length > 0 && this.#busy.size < this.#concurrency) this.#next(this.#start())
  }
}
