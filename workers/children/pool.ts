import { availableParallelism, totalmem } from 'node:os'
import { fileURLToPath } from 'node:url'
import { createSlots, type Slots } from '../../sql/connections/slots.ts'
import type { Log } from '../../tasks/platform/log.ts'
import type { ChildLease, Children, LeaseOptions, Limits } from './ports.ts'
import { type Child, type ChildLimits, startChild } from './process.ts'
import { probeSandbox, type Sandbox, type SandboxOptions } from './sandbox.ts'
import type { Work } from './work.ts'

/** The child processes of a worker. */
export interface ChildPool extends Children {
  /** Number of processes. */
  readonly size: number
  /** Resident memory of all children, in bytes. */
  readonly rssBytes: number
  /** Kills all children and refuses all waiting callers. */
  close(): Promise<void>
}

export interface ChildPoolOptions extends Partial<SandboxOptions> {
  readonly log: Log
  /** Called when a child is lost while it works. */
  readonly onLoss?: () => void
  /** Number of children that work concurrently; default one per core. */
  readonly concurrency?: number
  /** Absolute path of a module that calls `serveWork`; default `main.ts`. */
  readonly entry?: string
  readonly limits?: ChildLimits
  /** Lifetime of an idle child, in ms. */
  readonly idleMs?: number
  /** Interval of the limit checks, in ms. */
  readonly checkMs?: number
}

// The worst page takes 700 MB, an ordinary one 150 MB, or 300 MB with OCR.
const LIMITS: ChildLimits = { heapMb: 512, rssBytes: 2 ** 30 }
// A child of this size is replaced after its work: WebAssembly memory never shrinks, and libraries keep fonts and
// images.
const REPLACE_ABOVE_BYTES = 400 * 2 ** 20
const RESET_LIMITS: Limits = { cpuMs: 1000, wallMs: 5000 }
// Memory limit of all children. Above it, a non-urgent caller waits until all others have finished or memory is free.
const MAX_TOTAL_BYTES = totalmem() / 2

/**
 * Creates a pool; children start on demand. `concurrency` callers get a child, and half as many urgent ones, so neither
 * kind blocks the other. See `createSlots` for the order of owners.
 */
export function createChildPool(options: ChildPoolOptions): ChildPool {
  return new FairChildPool(options)
}

/** Decides which caller gets a child, and when. */
class FairChildPool implements ChildPool {
  readonly #log: Log
  readonly #onLoss: (() => void) | undefined
  readonly #checkMs: number
  readonly #processes: ChildProcesses
  readonly #slots: Slots
  readonly #urgentSlots: Slots
  // Busy children, including those that are being released.
  readonly #busy = new Set<Child>()
  readonly #returns = new Set<Promise<void>>()
  #checking: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(options: ChildPoolOptions) {
    const { concurrency = availableParallelism() } = options
    this.#log = options.log
    this.#onLoss = options.onLoss
    this.#checkMs = options.checkMs ?? 100
    this.#processes = new ChildProcesses(options)
    this.#slots = createSlots(concurrency, () => this.rssBytes < MAX_TOTAL_BYTES)
    this.#urgentSlots = createSlots(Math.ceil(concurrency / 2))
  }

  get size(): number {
    return this.#processes.size
  }

  get rssBytes(): number {
    return this.#processes.rssBytes
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
    const slots = urgent ? this.#urgentSlots : this.#slots
    const reserved = await slots.reserve(owner, 1, ifFree ? 0 : Number.POSITIVE_INFINITY, { signal })
    if (reserved === 0) {
      signal?.throwIfAborted()
      this.#throwIfClosed()
      return null
    }
    const freeSlot = (): void => slots.release(owner, 1)
    try {
      return new PooledLease(this, await this.#take(), { slots, freeSlot, signal })
    } catch (error) {
      freeSlot()
      throw error
    }
  }

  /** Resets a released child and keeps it for the next caller. Kills the child if a reset is impossible. */
  async reclaim(child: Child, freeSlot: () => void): Promise<void> {
    const returned = this.#return(child)
    this.#returns.add(returned)
    await returned
    this.#returns.delete(returned)
    freeSlot()
  }

  logLoss({ pid }: Child, kind: string, error: unknown): void {
    if (this.#isClosed) return
    this.#onLoss?.()
    this.#log.warn({ err: error, kind, pid }, 'A child process was lost while working')
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#stopChecking()
    for (const slots of [this.#slots, this.#urgentSlots]) void slots.close()
    this.#processes.close()
  }

  #throwIfClosed(): void {
    if (this.#isClosed) throw new Error('The pool of child processes is closed')
  }

  /** Takes an idle child. A child that is being released is ready sooner than a new one. */
  async #take(): Promise<Child> {
    while (this.#processes.idle === 0 && this.#returns.size > 0) await Promise.race(this.#returns)
    this.#throwIfClosed()
    const child = this.#processes.acquire()
    this.#busy.add(child)
    this.#checking ??= setInterval(() => this.#checkLimits(), this.#checkMs)
    return child
  }

  async #return(child: Child): Promise<void> {
    if (child.isAlive && !this.#isClosed && !child.isBusy && !isLarge(child)) await this.#reset(child)
    else child.kill()
    this.#busy.delete(child)
    if (child.isAlive && !this.#isClosed) this.#processes.keep(child)
    else this.#processes.forget(child)
    if (this.#busy.size === 0) this.#stopChecking()
  }

  /** Reads pending answers before it checks the limits: if this process was busy, a child may have answered in time. */
  #checkLimits(): void {
    const now = performance.now()
    setImmediate(() => {
      for (const child of this.#busy) child.check(now)
    })
  }

  #stopChecking(): void {
    clearInterval(this.#checking)
    this.#checking = undefined
  }

  #reset(child: Child): Promise<unknown> {
    return child.ask('reset', null, RESET_LIMITS).catch((error) => {
      if (!this.#isClosed) this.#log.warn({ err: error }, 'A child process could not be reused')
      child.kill()
    })
  }
}

/** Tracks all processes of the pool; kills a child after `idleMs` without work. */
class ChildProcesses {
  readonly #sandboxOptions: SandboxOptions
  #sandbox: Sandbox | undefined
  readonly #limits: ChildLimits
  readonly #idleMs: number
  readonly #all = new Set<Child>()
  readonly #idle = new Map<Child, NodeJS.Timeout>()

  constructor({ limits = LIMITS, idleMs = 20_000, ...options }: ChildPoolOptions) {
    this.#sandboxOptions = { entry: fileURLToPath(new URL('./main.ts', import.meta.url)), ...options }
    this.#limits = limits
    this.#idleMs = idleMs
  }

  get size(): number {
    return this.#all.size
  }

  get idle(): number {
    return this.#idle.size
  }

  get rssBytes(): number {
    return [...this.#all].reduce((sum, child) => sum + (child.usage()?.rssBytes ?? 0), 0)
  }

  /** Takes the most recently used idle child, or starts one. */
  acquire(): Child {
    const last = [...this.#idle.keys()].at(-1)
    if (last !== undefined) {
      clearTimeout(this.#idle.get(last))
      this.#idle.delete(last)
      if (last.isAlive) return last
      this.#all.delete(last)
    }
    this.#sandbox ??= probeSandbox(this.#sandboxOptions)
    const child = startChild(this.#sandboxOptions, this.#sandbox, this.#limits)
    this.#all.add(child)
    return child
  }

  /** Keeps a child idle for more work. */
  keep(child: Child): void {
    this.#idle.set(child, setTimeout(() => this.#retire(child), this.#idleMs).unref())
  }

  forget(child: Child): void {
    this.#all.delete(child)
  }

  close(): void {
    for (const timer of this.#idle.values()) clearTimeout(timer)
    for (const child of this.#all) child.kill()
    this.#all.clear()
  }

  #retire(child: Child): void {
    this.#idle.delete(child)
    this.#all.delete(child)
    child.kill()
  }
}

interface LeaseTerms {
  readonly slots: Slots
  readonly freeSlot: () => void
  readonly signal: AbortSignal | undefined
}

/** A child that one caller has leased. */
class PooledLease implements ChildLease {
  readonly #pool: FairChildPool
  readonly #child: Child
  readonly #terms: LeaseTerms
  readonly #signal: AbortSignal | undefined
  readonly #onAbort = (): void => this.kill()
  #isReturned = false

  constructor(pool: FairChildPool, child: Child, terms: LeaseTerms) {
    this.#pool = pool
    this.#child = child
    this.#terms = terms
    this.#signal = terms.signal
    if (this.#signal?.aborted) this.kill()
    else this.#signal?.addEventListener('abort', this.#onAbort, { once: true })
  }

  get shouldRelease(): boolean {
    return this.#terms.slots.waiting > 0 || isLarge(this.#child)
  }

  async ask<K extends keyof Work>(
    kind: K,
    request: Work[K]['request'],
    limits: Limits,
  ): Promise<Work[K]['answer']> {
    this.#signal?.throwIfAborted()
    if (this.#isReturned && this.#child.isAlive) throw new Error('The child was already released')
    try {
      return (await this.#child.ask(kind, request, limits)) as Work[K]['answer']
    } catch (error) {
      if (!this.#child.isAlive) {
        if (!this.#signal?.aborted) this.#pool.logLoss(this.#child, kind, error)
        this.release()
      }
      this.#signal?.throwIfAborted()
      throw error
    }
  }

  release(): void {
    if (this.#isReturned) return
    this.#isReturned = true
    this.#signal?.removeEventListener('abort', this.#onAbort)
    void this.#pool.reclaim(this.#child, this.#terms.freeSlot)
  }

  kill(): void {
    if (this.#isReturned) return
    this.#child.kill()
    this.release()
  }
}

const isLarge = (child: Child): boolean => (child.usage()?.rssBytes ?? 0) > REPLACE_ABOVE_BYTES
