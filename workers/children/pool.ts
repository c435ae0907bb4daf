import { availableParallelism, totalmem } from 'node:os'
import { fileURLToPath } from 'node:url'
import type { Log } from '../../tasks/log.ts'
import type { ChildLease, Children, LeaseOptions, Limits } from './ports.ts'
import { type Child, type ChildLimits, startChild } from './process.ts'
import { probeSandbox, type Sandbox, type SandboxOptions } from './sandbox.ts'
import type { Work } from './work.ts'

/** The children of a worker process. */
export interface ChildPool extends Children {
  /** How many processes exist at present. */
  readonly size: number
  /** Their resident memory, in bytes. */
  readonly rssBytes: number
  /** Ends all of them. */
  close(): Promise<void>
}

export interface ChildPoolOptions extends Partial<SandboxOptions> {
  readonly log: Log
  /** Called when a child is lost while it works. */
  readonly onLoss?: () => void
  /** How many children work at once; default one per core. */
  readonly places?: number
  /** A module that calls `serveWork`, as an absolute path; default is the one with all work. */
  readonly entry?: string
  readonly limits?: ChildLimits
  /** How long a child lives without work, in ms. */
  readonly idleMs?: number
  /** How often limits are checked, in ms. */
  readonly checkMs?: number
}

// A page of the worst kind takes 700 MB. An ordinary one takes 150, 300 with the vision engine.
const LIMITS: ChildLimits = { heapMb: 512, rssBytes: 2 ** 30 }
// WebAssembly's memory never shrinks, and libraries keep fonts and images: a child as large as this is replaced.
const LARGE_BYTES = 400 * 2 ** 20
const RESET: Limits = { cpuMs: 1000, wallMs: 5000 }
// Of all children together: above it, work that is not urgent waits for what is under way.
const MAX_BYTES = totalmem() / 2

const CLOSED = 'The pool of child processes is closed'

/** Whose work it is, and whether somebody waits for the answer. */
type Demand = Required<Pick<LeaseOptions, 'owner' | 'urgent'>>

/** A caller that waits for a child. */
interface Waiting extends Demand {
  grant(child: Child): void
  refuse(error: unknown): void
}

/**
 * Creates a pool; children start when they are needed. Waiting callers are served in turn, the urgent ones first, then
 * those whose owner has the fewest children at work. There is one more place than `places`, and both kinds may have all
 * but one: one owner's documents never hold up somebody who waits for an answer, and these never hold up documents. And
 * there is one more for the documents of an owner who has none at work, so that those of another never hold it up.
 */
export function createChildPool(options: ChildPoolOptions): ChildPool {
  return new FairChildPool(options)
}

/** Decides which caller gets a child, and when. */
class FairChildPool implements ChildPool {
  readonly #log: Log
  readonly #onLoss: (() => void) | undefined
  readonly #places: number
  readonly #checkMs: number
  readonly #processes: ChildProcesses
  // Including those that are being given back.
  readonly #busy = new Map<Child, Demand>()
  #waiting: Waiting[] = []
  #checking: NodeJS.Timeout | undefined
  // How many of the busy ones are being given back.
  #returning = 0
  #isClosed = false

  constructor(options: ChildPoolOptions) {
    this.#log = options.log
    this.#onLoss = options.onLoss
    this.#places = options.places ?? availableParallelism()
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
      if (this.#isClosed) throw new Error(CLOSED)
      signal?.throwIfAborted()
      const demand: Demand = { owner, urgent }
      if (ifFree && (this.#waiting.length > 0 || !this.#isFree(demand))) return resolve(null)
      this.#wait(demand, signal, resolve, reject)
      this.#serve()
    })
  }

  /** Whether others wait for a child, or this one has grown too large. */
  isDue(child: Child): boolean {
    return this.#waiting.length > 0 || isLarge(child)
  }

  /** Makes room for the next caller: a child that can be cleaned waits for more work, any other ends. */
  async takeBack(child: Child): Promise<void> {
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
    for (const one of this.#waiting) one.refuse(new Error(CLOSED))
    this.#processes.close()
  }

  #wait(
    demand: Demand,
    signal: AbortSignal | undefined,
    resolve: (lease: ChildLease) => void,
    reject: (error: unknown) => void,
  ): void {
    const leave = (): void => {
      this.#waiting = this.#waiting.filter((other) => other !== waiting)
      signal?.removeEventListener('abort', giveUp)
    }
    const waiting: Waiting = {
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
      // A child that is being given back is ready sooner than a new one.
      if (!next.urgent && this.#processes.idle === 0 && this.#returning > 0) return
      this.#waiting = this.#waiting.filter((one) => one !== next)
      try {
        const child = this.#processes.acquire()
        this.#busy.set(child, next)
        this.#checking ??= setInterval(() => this.#checkSoon(), this.#checkMs)
        next.grant(child)
      } catch (error) {
        next.refuse(error)
      }
    }
  }

  /** Whose turn it is, of those that could have a child now: urgent ones first; among equals, the longest wait. */
  #next(): Waiting | undefined {
    return (
      this.#waiting.find((one) => one.urgent && this.#isFree(one)) ??
      this.#waiting
        .filter((one) => this.#isFree(one))
        .toSorted((a, b) => this.#busyFor(a.owner) - this.#busyFor(b.owner))[0]
    )
  }

  #isFree({ owner, urgent }: Demand): boolean {
    const more = !urgent && this.#busyFor(owner) === 0 ? 1 : 0
    const max = this.#places + more
    const alike = [...this.#busy.values()].filter((one) => one.urgent === urgent).length
    if (this.#busy.size > max || alike >= max) return false
    return urgent || this.#busy.size === 0 || this.rssBytes < MAX_BYTES
  }

  #busyFor(owner: number): number {
    return [...this.#busy.values()].filter((one) => one.owner === owner && !one.urgent).length
  }

  /** Judges by the present time, and not before what had come by then is read: this process may have been busy. */
  #checkSoon(): void {
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
    return child.ask('reset', null, RESET).catch((error) => {
      if (!this.#isClosed) this.#log.warn({ err: error }, 'A child process could not be reused')
      child.kill()
    })
  }
}

/** All processes of the pool; one that has been idle for long enough ends. */
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

  /** The child that became idle last, or a new one. */
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

  /** Lets a child wait for more work. */
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

  get isDue(): boolean {
    return this.#pool.isDue(this.#child)
  }

  async ask<K extends keyof Work>(
    kind: K,
    request: Work[K]['request'],
    limits: Limits,
  ): Promise<Work[K]['answer']> {
    this.#signal?.throwIfAborted()
    if (this.#isReturned && this.#child.isAlive) throw new Error('The child was given back')
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
    void this.#pool.takeBack(this.#child)
  }

  kill(): void {
    if (this.#isReturned) return
    this.#child.kill()
    this.release()
  }
}

const isLarge = (child: Child): boolean => (child.usage()?.rssBytes ?? 0) > LARGE_BYTES
