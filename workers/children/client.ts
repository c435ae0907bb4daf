import { MessageChannel, type MessagePort } from 'node:worker_threads'
import { Failure, storedFailure } from '../../sql/errors.ts'
import {
  type ChildLease,
  ChildLost,
  type Children,
  type LeaseOptions,
  type Limits,
  type LossReason,
} from './ports.ts'

/** The pool of the main thread, as a task thread uses it: requests go by a port, in order; each has one answer. */

type Request =
  | { readonly kind: 'lease'; readonly lease: number; readonly urgent: boolean }
  | {
      readonly kind: 'ask'
      readonly lease: number
      readonly work: string
      readonly request: unknown
      readonly limits: Limits
    }
  | { readonly kind: 'release' | 'kill'; readonly lease: number }

type Reply = { readonly lease: number; readonly isDue: boolean } & (
  | { readonly kind: 'answer'; readonly answer: unknown }
  | { readonly kind: 'lost'; readonly why: LossReason; readonly at: number | null; readonly message: string }
  | { readonly kind: 'refused'; readonly code: string; readonly detail: string }
  | { readonly kind: 'failed'; readonly error: string }
)

/** Serves the pool to a thread. What the thread holds when it ends is killed: nobody knows what it was at. */
export function serveChildren(pool: Children, port: MessagePort): void {
  const ended = new AbortController()
  const leases = new Map<number, { readonly lease: Promise<ChildLease>; readonly killed: AbortController }>()
  const reply = (lease: number, isDue: boolean, rest: object): void =>
    port.postMessage({ lease, isDue, ...rest })

  const onRequest = async (request: Request): Promise<void> => {
    const id = request.lease
    if (request.kind === 'lease') {
      const killed = new AbortController()
      const signal = AbortSignal.any([ended.signal, killed.signal])
      const lease = pool.lease({ urgent: request.urgent, signal })
      leases.set(id, { lease, killed })
      await lease.then(
        () => reply(id, false, { kind: 'answer', answer: null }),
        () => leases.delete(id),
      )
      return
    }
    const held = leases.get(id)
    if (held === undefined) return
    if (request.kind === 'ask') {
      const lease = await held.lease
      await lease.ask(request.work as never, request.request as never, request.limits).then(
        (answer) => reply(id, lease.isDue, { kind: 'answer', answer }),
        (error) => reply(id, true, described(error)),
      )
      return
    }
    leases.delete(id)
    if (request.kind === 'kill') held.killed.abort()
    else (await held.lease).release()
  }
  port.on('message', (request: Request) => void onRequest(request).catch(() => {}))
  port.once('close', () => ended.abort())
  port.unref()
}

function described(error: unknown) {
  if (error instanceof ChildLost)
    return { kind: 'lost', why: error.why, at: error.at, message: error.message }
  if (error instanceof Failure) return { kind: 'refused', code: error.code, detail: error.detail }
  return { kind: 'failed', error: error instanceof Error ? `${error.stack ?? error.message}` : String(error) }
}

/** Uses the pool at the other end; `connect` hands that end to the main thread, once somebody needs a child. */
export function useChildren(connect: (port: MessagePort) => void): Children {
  let port: MessagePort | null = null
  let last = 0
  const waiting = new Map<number, (reply: Reply) => void>()

  const open = (): MessagePort => {
    const { port1, port2 } = new MessageChannel()
    port1.on('message', (reply: Reply) => waiting.get(reply.lease)?.(reply))
    port1.unref()
    connect(port2)
    return port1
  }

  /** A thread that waits for nothing is not kept alive. */
  const forget = (lease: number): void => {
    waiting.delete(lease)
    if (waiting.size === 0) port!.unref()
  }

  const ask = (request: Request): Promise<Reply> => {
    port ??= open()
    port.ref()
    return new Promise((resolve) => {
      waiting.set(request.lease, (reply) => {
        forget(request.lease)
        resolve(reply)
      })
      port!.postMessage(request)
    })
  }

  return {
    lease: async ({ urgent = false, signal }: LeaseOptions = {}) => {
      signal?.throwIfAborted()
      const lease = ++last
      const tell = (kind: 'release' | 'kill'): void => {
        signal?.removeEventListener('abort', kill)
        port!.postMessage({ kind, lease } satisfies Request)
      }
      let abort: ((reason: unknown) => void) | null = null
      const aborted = new Promise<never>((_, reject) => {
        abort = reject
      })
      aborted.catch(() => {})
      const kill = (): void => {
        tell('kill')
        forget(lease)
        abort!(signal?.aborted ? signal.reason : new ChildLost('crash'))
      }
      signal?.addEventListener('abort', kill, { once: true })
      await Promise.race([ask({ kind: 'lease', lease, urgent }), aborted])
      let isDue = false
      return {
        ask: async (work, request, limits) => {
          const reply = await Promise.race([ask({ kind: 'ask', lease, work, request, limits }), aborted])
          isDue = reply.isDue
          if (reply.kind === 'answer') return reply.answer as never
          if (reply.kind === 'lost') throw new ChildLost(reply.why, reply.at, reply.message)
          if (reply.kind === 'refused') throw storedFailure(reply)
          throw new Error(reply.error)
        },
        get isDue() {
          return isDue
        },
        release: () => tell('release'),
        kill,
      }
    },
  }
}
