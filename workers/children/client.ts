import { MessageChannel, type MessagePort } from 'node:worker_threads'
import { mapShortage } from '../../sql/error-mapping.ts'
import { Failure, restoreFailure } from '../../sql/errors.ts'
import {
  type ChildLease,
  ChildLost,
  type Children,
  type LeaseOptions,
  type Limits,
  type LossReason,
} from './ports.ts'
import type { Work } from './work.ts'

/** Lets task threads use the main thread's child pool over a port. Each `lease` and `ask` gets one answer, in order. */

type Request =
  | {
      readonly kind: 'lease'
      readonly lease: number
      readonly owner: number
      readonly urgent: boolean
      readonly ifFree: boolean
    }
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

interface LeaseEntry {
  readonly lease: Promise<ChildLease | null>
  readonly abort: AbortController
}

/** Serves the pool to a thread. When the thread ends, its children are killed, because their state is unknown. */
export function serveChildren(pool: Children, port: MessagePort): void {
  const entries = new Map<number, LeaseEntry>()
  const reply = (lease: number, isDue: boolean, rest: object): void =>
    port.postMessage({ lease, isDue, ...rest })

  const grant = async ({ lease: id, ...options }: Request & { kind: 'lease' }): Promise<void> => {
    const abort = new AbortController()
    const lease = pool.lease({ ...options, signal: abort.signal })
    entries.set(id, { lease, abort })
    const granted = await lease.catch((error) => {
      entries.delete(id)
      reply(id, false, formatError(error))
    })
    if (granted === null) entries.delete(id)
    if (granted !== undefined) reply(id, false, { kind: 'answer', answer: granted !== null })
  }

  const onRequest = async (request: Request): Promise<void> => {
    if (request.kind === 'lease') return grant(request)
    const entry = entries.get(request.lease)
    if (entry === undefined) return
    if (request.kind === 'ask') {
      const lease = (await entry.lease)!
      await lease.ask(request.work as never, request.request as never, request.limits).then(
        (answer) => reply(request.lease, lease.shouldRelease, { kind: 'answer', answer }),
        (error) => reply(request.lease, true, formatError(error)),
      )
      return
    }
    entries.delete(request.lease)
    if (request.kind === 'kill') entry.abort.abort()
    else (await entry.lease)?.release()
  }
  port.on('message', (request: Request) => void onRequest(request).catch(() => {}))
  port.once('close', () => {
    for (const { abort } of entries.values()) abort.abort()
  })
  port.unref()
}

function formatError(reason: unknown) {
  const error = mapShortage(reason)
  if (error instanceof ChildLost)
    return { kind: 'lost', why: error.lossReason, at: error.at, message: error.message }
  if (error instanceof Failure) return { kind: 'refused', code: error.code, detail: error.detail }
  return { kind: 'failed', error: error instanceof Error ? `${error.stack ?? error.message}` : String(error) }
}

function unwrapReply(reply: Reply): unknown {
  switch (reply.kind) {
    case 'answer':
      return reply.answer
    case 'lost':
      throw new ChildLost(reply.why, reply.at, reply.message)
    case 'refused':
      throw restoreFailure(reply)
    case 'failed':
      throw new Error(reply.error)
  }
}

interface Waiter {
  resolve(reply: Reply): void
  reject(error: unknown): void
}

/**
 * Creates a thread's client of the pool. The first lease opens the port; `connect` passes its other end to the main
 * thread.
 */
export function createChildrenClient(connect: (port: MessagePort) => void): Children {
  return new ChildrenClient(connect)
}

/** Leases children over the thread's end of the port. */
class ChildrenClient implements Children {
  readonly #connect: (port: MessagePort) => void
  readonly #waiting = new Map<number, Waiter>()
  #port: MessagePort | null = null
  #lastId = 0

  constructor(connect: (port: MessagePort) => void) {
    this.#connect = connect
  }

  lease(options: LeaseOptions & { readonly ifFree: true }): Promise<ChildLease | null>
  lease(options?: LeaseOptions): Promise<ChildLease>
  async lease({
    owner = 0,
    urgent = false,
    ifFree = false,
    signal,
  }: LeaseOptions = {}): Promise<ChildLease | null> {
    signal?.throwIfAborted()
    const id = ++this.#lastId
    const lease = new RemoteLease(this, id, signal)
    if (unwrapReply(await this.ask({ kind: 'lease', lease: id, owner, urgent, ifFree })) !== false)
      return lease
    lease.ignoreAbort()
    return null
  }

  ask(request: Request, transfer: readonly ArrayBuffer[] = []): Promise<Reply> {
    this.#port ??= this.#open()
    this.#port.ref()
    return new Promise((resolve, reject) => {
      this.#waiting.set(request.lease, { resolve, reject })
      this.#port!.postMessage(request, transfer)
    })
  }

  /** Sends a request that gets no answer. */
  post(request: Request): void {
    this.#port!.postMessage(request)
  }

  /**
   * Removes and returns the waiting caller of a lease. Without waiting callers, the port does not keep the thread
   * alive.
   */
  takeWaiter(lease: number): Waiter | undefined {
    const found = this.#waiting.get(lease)
    this.#waiting.delete(lease)
    if (this.#waiting.size === 0) this.#port!.unref()
    return found
  }

  #open(): MessagePort {
    const { port1, port2 } = new MessageChannel()
    port1.on('message', (reply: Reply) => this.takeWaiter(reply.lease)?.resolve(reply))
    this.#connect(port2)
    return port1
  }
}

/** A child that is leased or still requested. An abort kills the child or cancels the request. */
class RemoteLease implements ChildLease {
  readonly #client: ChildrenClient
  readonly #id: number
  readonly #signal: AbortSignal | undefined
  readonly #onAbort = (): void => this.kill()
  // The error for further requests; null while the lease is active.
  #ended: unknown = null
  // True if the last answer asked for the child's release.
  #isDue = false

  constructor(client: ChildrenClient, id: number, signal: AbortSignal | undefined) {
    this.#client = client
    this.#id = id
    this.#signal = signal
    signal?.addEventListener('abort', this.#onAbort, { once: true })
  }

  get shouldRelease(): boolean {
    return this.#isDue
  }

  async ask<K extends keyof Work>(
    work: K,
    request: Work[K]['request'],
    limits: Limits,
  ): Promise<Work[K]['answer']> {
    if (this.#ended !== null) throw this.#ended
    const transfer = request instanceof Uint8Array ? [request.buffer as ArrayBuffer] : []
    const reply = await this.#client.ask({ kind: 'ask', lease: this.#id, work, request, limits }, transfer)
    this.#isDue = reply.isDue
    return unwrapReply(reply) as Work[K]['answer']
  }

  release(): void {
    this.#end('release')
  }

  kill(): void {
    this.#end('kill')
    this.#ended = this.#signal?.aborted ? this.#signal.reason : new ChildLost('crash')
    this.#client.takeWaiter(this.#id)?.reject(this.#ended)
  }

  ignoreAbort(): void {
    this.#signal?.removeEventListener('abort', this.#onAbort)
  }

  #end(kind: 'release' | 'kill'): void {
    this.ignoreAbort()
    if (this.#ended === null) this.#client.post({ kind, lease: this.#id })
    this.#ended ??= new Error('The child was already released')
  }
}

/** Returns the pool for one owner's leases. */
export const bindChildrenToOwner = (children: Children, owner: number): Children => ({
  lease: ((options: LeaseOptions = {}) => children.lease({ ...options, owner })) as Children['lease'],
})
