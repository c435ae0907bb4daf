/** Threads of this task thread that read pages: what hangs or crashes over a page costs that page, and never the job. */
import { Worker } from 'node:worker_threads'
import type { Answer, Request } from './page-thread.ts'

export interface PageThread {
  /**
   * Asks one thing; not before the last answer has come.
   * @throws ThreadLost when the thread dies over it or takes longer than `limitMs`; it is gone then.
   */
  ask<K extends Request['kind']>(
    request: Extract<Request, { kind: K }> | (Request & { kind: K }),
    limitMs: number,
  ): Promise<Extract<Answer, { kind: K }>>
  end(): Promise<void>
}

/** The thread is gone, because of what it was asked. */
export class ThreadLost extends Error {
  readonly why: 'crash' | 'late' | 'memory'
  constructor(why: ThreadLost['why'], cause?: unknown) {
    super(`A page thread was lost: ${why}`, { cause })
    this.name = 'ThreadLost'
    this.why = why
  }
}

// Bounds what a bad document can take of the JavaScript heap; PDFium and the vision engine have limits of their own.
const HEAP_MB = 384
const IDLE_MS = 20_000
// Of the whole process. Beyond it no thread waits for work, and a document has one: every task thread has its own here.
const ROOMY_BYTES = 700 * 2 ** 20

// Of the whole process. Beyond it one document is read at a time, each picture on a thread of its own: two pages of the
// worst kind take 700 MB each, and 2 GB are not to be passed.
const TIGHT_BYTES = 1200 * 2 ** 20

const idle = new Map<PageThread, NodeJS.Timeout>()

/** Whether this process holds so little memory that threads may be kept, or started to read faster. */
export function isRoomy(): boolean {
  return process.memoryUsage.rss() < ROOMY_BYTES
}

/** Whether this process holds so much memory that what holds some should end before anything else begins. */
export function isTight(): boolean {
  return process.memoryUsage.rss() > TIGHT_BYTES
}

/** A thread without a document: one that waits for work, or a new one (100 ms). */
export function takeThread(): PageThread {
  const last = [...idle].at(-1)
  if (last === undefined) return startThread()
  clearTimeout(last[1])
  idle.delete(last[0])
  return last[0]
}

/** Gives a thread back that has closed its document; it ends after 20 s without work, or at once when memory is short. */
export function returnThread(thread: PageThread): void {
  const end = (): void => {
    idle.delete(thread)
    void thread.end()
  }
  if (isRoomy()) idle.set(thread, setTimeout(end, IDLE_MS).unref())
  else end()
}

export async function endIdleThreads(): Promise<void> {
  const ending = [...idle]
  idle.clear()
  await Promise.all(
    ending.map(([thread, timer]) => {
      clearTimeout(timer)
      return thread.end()
    }),
  )
}

function startThread(): PageThread {
  const worker = new Worker(new URL('./page-thread.ts', import.meta.url), {
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
  })
  let lost: ThreadLost | null = null
  let waiting: { resolve(given: Answer): void; reject(error: Error): void } | null = null
  const lose = (error: ThreadLost): void => {
    lost ??= error
    waiting?.reject(lost)
  }
  worker.on('message', (given: Answer) => waiting?.resolve(given))
  worker.on('error', (error) => lose(new ThreadLost(isOutOfMemory(error) ? 'memory' : 'crash', error)))
  worker.on('exit', () => lose(new ThreadLost('crash')))
  // A thread without work must not keep its process alive.
  worker.unref()
  return {
    ask: async (request, limitMs) => {
      if (lost) throw lost
      worker.ref()
      const { promise, resolve, reject } = Promise.withResolvers<Answer>()
      waiting = { resolve, reject }
      const late = setTimeout(() => {
        lose(new ThreadLost('late'))
        void worker.terminate()
      }, limitMs)
      worker.postMessage(request)
      try {
        const given = await promise
        if (given.kind === 'failed') throw new Error(`A page thread failed: ${given.error}`)
        return given as never
      } finally {
        clearTimeout(late)
        worker.unref()
        waiting = null
      }
    },
    end: async () => void (await worker.terminate()),
  }
}

function isOutOfMemory(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ERR_WORKER_OUT_OF_MEMORY'
}
