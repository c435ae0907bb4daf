import { Worker } from 'node:worker_threads'
import { Failure } from '../../sql/errors.ts'
import type { Message } from './process.ts'

/** The inside of a child: what it can be asked, by kind. */
export type Handlers = Readonly<Record<string, (request: never) => unknown>>

/** CPU time of this process, in ms. */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

/** Tells where the work is, in case it is the last that is heard of this child. */
export function report(at: number): void {
  send({ kind: 'at', at })
}

// What computes does not hear that its parent was killed.
const WATCH_PARENT = `
  const { workerData: parent } = require('node:worker_threads')
  setInterval(() => process.ppid === parent || process.kill(process.pid, 'SIGKILL'), 500)`

/**
 * Answers what the parent asks, one thing after the other, until the parent is gone. `reset` must leave no trace of what came
 * before it.
 */
export function serveWork(handlers: Handlers & { reset(): unknown }): void {
  // A terminal sends them to everybody in it; the parent decides.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
  process.on('disconnect', () => process.exit())
  new Worker(WATCH_PARENT, {
    eval: true,
    workerData: process.ppid,
    resourceLimits: { maxOldGenerationSizeMb: 16 },
  }).unref()
  process.on('message', ({ kind, request }: { kind: string; request: never }) => {
    void answer(handlers[kind]!, request)
      .then(send)
      .catch((error) => send({ kind: 'failed', error: String(error) }))
  })
  send({ kind: 'ready' })
}

async function answer(handler: (request: never) => unknown, request: never): Promise<Message> {
  try {
    return { kind: 'answer', answer: await handler(request) }
  } catch (error) {
    // WebAssembly is in no state to go on after that; another child may do without it.
    if (error instanceof Error && error.name === 'RuntimeError') process.abort()
    if (error instanceof Failure) return { kind: 'refused', code: error.code, detail: error.detail }
    return {
      kind: 'failed',
      error: error instanceof Error ? `${error.stack ?? error.message}` : String(error),
    }
  }
}

function send(message: Message): void {
  // What the parent doesn't hear any more, nobody misses.
  process.send!(message, undefined, undefined, () => {})
}
