import { Worker } from 'node:worker_threads'
import type { ThreadReply, ThreadRequest, ThreadResult } from './messages.ts'

interface PendingRequest {
  readonly request: ThreadRequest
  readonly resolve: (result: ThreadResult) => void
  readonly reject: (error: Error) => void
}

/** A pool of threads. Each handles one request at a time, in order, and starts on first use. */
export class ThreadPool {
  readonly #file: URL
  readonly #concurrency: number
  readonly #workerData: unknown
  readonly #waiting: PendingRequest[] = []
  readonly #idle: Worker[] = []
  readonly #busy = new Map<Worker, PendingRequest>()

  constructor(file: URL, concurrency: number, workerData?: unknown) {
    this.#file = file
    this.#concurrency = concurrency
    this.#workerData = workerData
  }

  /** Number of requests that wait for a thread. */
  get waitingCount(): number {
    return this.#waiting.length
  }

  run(request: ThreadRequest): Promise<ThreadResult> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ request, resolve, reject })
      const idle = this.#idle.pop()
      if (idle !== undefined) this.#assignNext(idle)
      else if (this.#busy.size < this.#concurrency) this.#assignNext(this.#startThread())
    })
  }

  async close(): Promise<void> {
    this.#waiting.length = 0
    const workers = [...this.#idle.splice(0), ...this.#busy.keys()]
    await Promise.all(workers.map((worker) => worker.terminate()))
  }

  #startThread(): Worker {
    const worker = new Worker(this.#file, { workerData: this.#workerData })
    worker.on('message', (reply: ThreadReply) => this.#handleReply(worker, reply))
    worker.on('error', (error) => this.#handleExit(worker, error))
    worker.on('exit', () => this.#handleExit(worker, new Error('A password thread has exited')))
    return worker
  }

  /** Assigns the oldest waiting request to a thread. */
  #assignNext(worker: Worker): void {
    const pending = this.#waiting.shift()
    if (pending === undefined) {
      this.#idle.push(worker)
      // An idle thread must not keep the process alive.
      worker.unref()
      return
    }
    this.#busy.set(worker, pending)
    worker.ref()
    worker.postMessage(pending.request)
  }

  #handleReply(worker: Worker, reply: ThreadReply): void {
    const pending = this.#busy.get(worker)
    this.#busy.delete(worker)
    if ('error' in reply) pending?.reject(new Error(reply.error))
    else pending?.resolve(reply.result)
    this.#assignNext(worker)
  }

  #handleExit(worker: Worker, error: Error): void {
    if (this.#idle.includes(worker)) this.#idle.splice(this.#idle.indexOf(worker), 1)
    this.#busy.get(worker)?.reject(error)
    this.#busy.delete(worker)
    if (this.#waiting.length > 0 && this.#busy.size < this.#concurrency) this.#assignNext(this.#startThread())
  }
}
