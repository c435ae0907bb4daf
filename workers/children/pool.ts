import { availableParallelism, totalmem } from 'node:os'
import { fileURLToPath } from 'node:url'
import type { Log } from '../../tasks/log.ts'
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
// Memory limit of all children. Above it, a non-urgent caller waits until all running work has finished or memory is
// free.
const MAX_TOTAL_BYTES = totalmem() / 2

const POOL_CLOSED_MESSAGE = 'The pool of child processes is closed'

type LeaseDemand = Required<Pick<LeaseOptions, 'owner' | 'urgent'>>

/** A caller that waits for a child. */
interface Waiter extends LeaseDemand {
  grant(child: Child): void
  refuse(error: unknown): void
}

/**
 * Creates a pool; children start on demand. Urgent callers are served first, then those whose owner has the fewest busy
 * children, then by arrival. The pool has one slot more than `concurrency`. Urgent and other callers may each use all
 * slots but one, so neither kind blocks the other. A non-urgent caller whose owner has no busy child may use another
 * extra slot, so that the work of other owners never blocks it.
 */
export function createChildPool(options: ChildPoolOptions): ChildPool {
  return new FairChildPool(options)
}

/** Decides which caller gets a child, and when. */
class FairChildPool implements ChildPool {
  readonly #log: Log
  readonly #onLoss: (() => void) | undefined
  readonly #concurrency: number
  readonly #checkMs: number
  readonly #processes: ChildProcesses
  // Busy children, including those that are being released.
  readonly #busy = new Map<Child, LeaseDemand>()
  #waiting: Waiter[] = []
  #checking: NodeJS.Timeout | undefined
  // Number of busy children that are being released.
  #returning = 0
  #isClosed = false

  constructor(options: ChildPoolOptions) {
    this.#log = options.log
    this.#onLoss = options.onLoss
    this.#concurrency = options.concurrency ?? availableParallelism()
    this.#checkMs = options.checkMs ?? 100
    this.#processes = new ChildProcesses(options)
  }

  get size(): number {
    return this.#processes.size
  }

  get rssBytes(): number {
    return this.#processes.rssBytes
  }

  lease(options: LeaseOptions & { readonly ifFree: true }): Promise<ChildLease | null>
  lease(options?: LeaseOptions): Promise<ChildLease>
  lease({
    owner = 0,
    urgent = false,
    ifFree = false,
    signal,
  }: LeaseOptions = {}): Promise<ChildLease | null> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) throw new Error(POOL_CLOSED_MESSAGE)
      signal?.throwIfAborted()
      const demand: LeaseDemand = { owner, urgent }
      if (ifFree && (this.#waiting.length > 0 || !this.#isFree(demand))) return resolve(null)
      this.#wait(demand, signal, resolve, reject)
      this.#serve()
    })
  }

  /** True if other callers wait for a child, or this child has grown too large. */
  isDue(child: Child): boolean {
    return this.#waiting.length > 0 || isLarge(child)
  }

  /** Resets a released child and keeps it for the next caller. Kills the child if a reset is impossible. */
  async reclaim(child: Child): Promise<void> {
    this.#returning++
    if (child.isAlive && !this.#isClosed && !child.isBusy && !isLarge(child)) await this.#reset(child)
    else child.kill()
    this.#returning--
    this.#busy.delete(child)
    if (child.isAlive && !this.#isClosed) this.#processes.keep(child)
    else this.#processes.forget(child)
    if (this.#busy.size === 0) this.#stopChecking()
    this.#serve()
  }

  logLoss({ pid }: Child, kind: string, error: unknown): void {
    if (this.#isClosed) return
    this.#onLoss?.()
    this.#log.warn({ err: error, kind, pid }, 'A child process was lost while working')
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#checking)
    for (const one of this.#waiting) one.refuse(new Error(POOL_CLOSED_MESSAGE))
    this.#processes.close()
  }

  #wait(
    demand: LeaseDemand,
    signal: AbortSignal | undefined,
    resolve: (lease: ChildLease) => void,
    reject: (error: unknown) => void,
  ): void {
    const leave = (): void => {
      this.#waiting = this.#waiting.filter((other) => other !== waiting)
      signal?.removeEventListener('abort', giveUp)
    }
    const waiting: Waiter = {
      ...demand,
      grant: (child) => {
        leave()
        resolve(new PooledLease(this, child, signal))
      },
      refuse: (error) => {
        leave()
        reject(error)
      },
    }
    const giveUp = (): void => waiting.refuse(signal!.reason)
    signal?.addEventListener('abort', giveUp, { once: true })
    this.#waiting.push(waiting)
  }

  #serve(): void {
    while (!this.#isClosed) {
      const next = this.#next()
      if (next === undefined) return
      // A child that is being released is ready sooner than a new one.
      if (!next.urgent && this.#processes.idle === 0 && this.#returning > 0) return
      this.#waiting = this.#waiting.filter((one) => one !== next)
      try {
        const child = this.#processes.acquire()
        this.#busy.set(child, next)
        this.#checking ??= setInterval(() => this.#checkLimits(), this.#checkMs)
        next.grant(child)
      } catch (error) {
        next.refuse(error)
      }
    }
  }

  /**
   * Returns the next caller with a free slot: urgent callers first, then the owner with the fewest busy children, then
   * the longest wait.
   */
  #next(): Waiter | undefined {
    return (
      this.#waiting.find((one) => one.urgent && this.#isFree(one)) ??
      this.#waiting
        .filter((one) => this.#isFree(one))
        .toSorted((a, b) => this.#busyFor(a.owner) - this.#busyFor(b.owner))[0]
    )
  }

  #isFree({ owner, urgent }: LeaseDemand): boolean {
    const extra = !urgent && this.#busyFor(owner) === 0 ? 1 : 0
    const max = this.#concurrency + extra
    const sameKind = [...this.#busy.values()].filter((one) => one.urgent === urgent).length
    if (this.#busy.size > max || sameKind >= max) return false
    return urgent || this.#busy.size === 0 || this.rssBytes < MAX_TOTAL_BYTES
  }

  #busyFor(owner: number): number {
    return [...this.#busy.values()].filter((one) => one.owner === owner && !one.urgent).length
  }

  /** Reads pending answers before it checks the limits: if this process was busy, a child may have answered in time. */
  #checkLimits(): void {
    const now = performance.now()
    setImmediate(() => {
      for (const child of this.#busy.keys()) child.check(now)
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

/** A child that one caller has leased. */
class PooledLease implements ChildLease {
  readonly #pool: FairChildPool
  readonly #child: Child
  readonly #signal: AbortSignal | undefined
  readonly #onAbort = (): void => this.kill()
  #isReturned = false

  constructor(pool: FairChildPool, child: Child, signal: AbortSignal | undefined) {
    this.#pool = pool
    this.#child = child
    this.#signal = signal
    if (signal?.aborted) this.kill()
    else signal?.addEventListener('abort', this.#onAbort, { once: true })
  }

  get shouldRelease(): boolean {
    return this.#pool.isDue(this.#child)
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
    void this.#pool.reclaim(this.#child)
  }

  kill(): void {
    if (this.#isReturned) return
    this.#child.kill()
    this.release()
  }
}

const isLarge = (child: Child): boolean => (child.usage()?.rssBytes ?? 0) > REPLACE_ABOVE_BYTES
