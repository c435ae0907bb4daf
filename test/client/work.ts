import { type Connection, createSend } from './work-calls.ts'
import { Loop } from './work-loop.ts'
import type { DeclaredTask, TaskFunction, Tasks, Worker, WorkOptions } from './work-types.ts'

/** Works for a worker queue: claims its jobs, runs them and reports their ends. */

interface Process {
  readonly pid: number
  readonly version: string
  once(event: string, listener: () => void): unknown
  off(event: string, listener: () => void): unknown
  getBuiltinModule?(name: string): { hostname(): string }
}

const STOP_SIGNALS = ['SIGTERM', 'SIGINT']
/** The process; undefined in browsers. */
const { process } = globalThis as { readonly process?: Process }

/** Starts a worker for the tasks of a queue. @param toError creates the error of a refusal. */
export function startWork(
  connection: Connection,
  toError: (response: Response) => Promise<Error>,
  queue: string,
  tasks: Tasks,
  options: WorkOptions = {},
): Worker {
  const { concurrency = 10, leaseSeconds = 30, stopSeconds = 20, signal } = options
  if (!(concurrency >= 1)) throw new RangeError('concurrency must be at least 1')
  const loop = new Loop(createSend(connection, toError), {
    queue,
    worker: describeWorker(options.name),
    concurrency: Math.floor(concurrency),
    leaseSeconds,
    stopSeconds,
    tasks: new Map(Object.entries(tasks).map(([name, task]) => [name, functionOf(task)])),
    declarations: Object.entries(tasks).map(declarationOf),
    onError: options.onError ?? ((error) => console.warn(`Worker of ${queue}: ${error.message}`)),
  })
  const { stop } = loop
  const handled = options.handleSignals === false ? [] : STOP_SIGNALS
  for (const name of handled) process?.once(name, stop)
  signal?.addEventListener('abort', stop, { once: true })
  if (signal?.aborted) stop()
  const done = loop.run().finally(() => {
    for (const name of handled) process?.off(name, stop)
    signal?.removeEventListener('abort', stop)
  })
  return {
    done,
    stop: () => {
      stop()
      return done
    },
  }
}

const functionOf = (task: TaskFunction | DeclaredTask): TaskFunction =>
  typeof task === 'function' ? task : task.run

/** Returns the task as a claim names it: its name only, or its declaration. */
function declarationOf([name, task]: readonly [string, TaskFunction | DeclaredTask]): string | object {
  if (typeof task === 'function') return name
  const { run: _, ...declaration } = task
  return { name, ...declaration }
}

function describeWorker(name: string | undefined): object {
  const host = process?.getBuiltinModule?.('node:os').hostname()
  const version = process?.version
  return { name: name ?? `${host ?? 'browser'}:${process?.pid ?? 0}`, host, language: 'typescript', version }
}
