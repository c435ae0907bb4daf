import { isLoadFailure, mapShortage } from '../../sql/error-mapping.ts'
import { Failure } from '../../sql/errors.ts'
import { endWithParent } from '../../tasks/platform/parent.ts'
import type { Message } from './process.ts'

/** The handlers inside a child, by kind of request. */
export type Handlers = Readonly<Record<string, (request: never) => unknown>>

/** Reports the page or item in progress, so that the parent knows it if this child dies. */
export function reportProgress(at: number): void {
  send({ kind: 'at', at })
}

/**
 * Answers the parent's requests, one at a time, until the parent is gone. `reset` must remove all state of earlier
 * work.
 */
export function serveWork(handlers: Handlers & { reset(): unknown }): void {
  endWithParent()
  process.on('message', ({ kind, request }: { kind: string; request: never }) => {
    void answerRequest(handlers[kind]!, request)
      .then(send)
      .catch((error) => send({ kind: 'failed', error: String(error) }))
  })
  send({ kind: 'ready' })
}

async function answerRequest(handler: (request: never) => unknown, request: never): Promise<Message> {
  try {
    return { kind: 'answer', answer: await handler(request) }
  } catch (error) {
    // WebAssembly is unusable after a trap. The abort lets the caller retry in another child, without PDFium.
    if (error instanceof Error && error.name === 'RuntimeError') process.abort()
    // Node may remember that a module could not be loaded, so the child ends once it has answered.
    if (isLoadFailure(error)) setImmediate(() => process.disconnect())
    const failure = mapShortage(error)
    if (failure instanceof Failure) return { kind: 'refused', code: failure.code, detail: failure.detail }
    return {
      kind: 'failed',
      error: error instanceof Error ? `${error.stack ?? error.message}` : String(error),
    }
  }
}

function send(message: Message): void {
  // Ignores errors: the parent may be gone.
  process.send!(message, undefined, undefined, () => {})
}
