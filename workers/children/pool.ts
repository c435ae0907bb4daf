import { availableParallelism } from 'node:os'
import type { Log } from '../../tasks/log.ts'
import type { ChildLease, Children, LeaseOptions, Limits } from './ports.ts'
import { type Child, type ChildLimits, startChild } from './process.ts'

/** The children of a worker process. */
export interface ChildPool extends Children {
  /** Processes that there are at present. */
  readonly size: number
  /** Their resident memory, in bytes. */
  readonly rssBytes: number
  /** Ends all of them. */
  close(): Promise<void>
}

export interface ChildPoolOptions {
  readonly log: Log
  /** Children at work at once; default one for each core. */
  readonly places?: number
  /** A module that calls `serveWork`, as an absolute path; default is the one with all work. */
  readonly entry?: string
  readonly limits?: ChildLimits
  /** After so long without work a child ends, in ms. */
  readonly idleMs?: number
  /** How often limits are looked at, in ms. */
  readonly checkMs?: number
}

// A page of the worst kind takes 700 MB. An ordinary one takes 150, 300 with the vision engine.
const LIMITS: ChildLimits = { heapMb: 512, rssBytes: 2 ** 30 }
// WebAssembly's memory never shrinks, and libraries keep fonts and images: a child as large as this is replaced.
const LARGE_BYTES = 400 * 2 ** 20
const RESET: Limits = { cpuMs: 5000, wallMs: 60_000 }

interface Waiting {
  readonly urgent: boolean
  grant(child: Child): void
}

/**
 * Makes a pool; children start when they are needed. Those who wait are served in turn, the urgent ones first, who may
 * have one child more than there are places: a long document never holds up somebody who waits for an answer.
 */
export function createChildPool(options: ChildPoolOptions): ChildPool {
  const entry = options.entry ?? new URL('./main.ts', import.meta.url).pathname
  const { log, places = availableParallelism(), limits = LIMITS, idleMs = 20_000, checkMs = 100 } = options
  const all = new Set<Child>()
  const busy = new Set<Child>()
  const idle = new Map<Child, NodeJS.Timeout>()
  let waiting: Waiting[] = []
  let checking: NodeJS.Timeout | undefined
  let returning = 0
  let closed = false

  const take = (): Child => {
    const last = [...idle.keys()].at(-1)
    if (last !== undefined) {
      clearTimeout(idle.get(last))
      idle.delete(last)
      if (last.isAlive) return last
      all.delete(last)
    }
    const child = startChild(entry, limits)
    all.add(child)
    return child
  }

  const serve = (): void => {
    for (;;) {
      const next = waiting.find(({ urgent }) => urgent) ?? waiting[0]
      if (next === undefined || busy.size >= places + (next.urgent ? 1 : 0)) return
      // One that is being given back is there sooner than a new one.
      if (idle.size === 0 && returning > 0) return
      waiting = waiting.filter((one) => one !== next)
      const child = take()
      busy.add(child)
      checking ??= setInterval(check, checkMs)
      next.grant(child)
    }
  }

  const check = (): void => {
    const now = performance.now()
    for (const child of busy) child.check(now)
  }

  const isLarge = (child: Child): boolean => {
    const usage = child.usage()
    return usage !== null && usage.rssBytes > LARGE_BYTES
  }

  /** Makes room for the next one: the child waits for work when it is clean, and ends when it is not. */
  const giveBack = async (child: Child): Promise<void> => {
    returning++
    if (child.isAlive && !closed && !isLarge(child)) {
      await child.ask('reset', null, RESET).catch((error) => {
        if (!closed) log.warn({ err: error }, 'A child process could not be used again')
        child.kill()
      })
    } else child.kill()
    returning--
    busy.delete(child)
    if (child.isAlive && !closed) idle.set(child, setTimeout(() => retire(child), idleMs).unref())
    else all.delete(child)
    if (busy.size === 0) {
      clearInterval(checking)
      checking = undefined
    }
    serve()
  }

  const retire = (child: Child): void => {
    idle.delete(child)
    all.delete(child)
    child.kill()
  }

  const leaseOf = (child: Child, signal: AbortSignal | undefined): ChildLease => {
    let returned = false
    const end = (): void => {
      if (returned) return
      returned = true
      signal?.removeEventListener('abort', kill)
      void giveBack(child)
    }
    const kill = (): void => {
      child.kill()
      end()
    }
    if (signal?.aborted) kill()
    else signal?.addEventListener('abort', kill, { once: true })
    return {
      ask: async (kind, request, limit) => {
        try {
          return (await child.ask(kind, request, limit)) as never
        } catch (error) {
          if (!child.isAlive) {
            log.warn({ err: error, kind, pid: child.pid }, 'A child process was lost over its work')
            end()
          }
          signal?.throwIfAborted()
          throw error
        }
      },
      get isDue() {
        return waiting.length > 0 || isLarge(child)
      },
      release: end,
      kill,
    }
  }

  return {
    lease: ({ urgent = false, signal }: LeaseOptions = {}) =>
      new Promise((resolve, reject) => {
        if (closed) throw new Error('The pool of child processes is closed')
        signal?.throwIfAborted()
        const one: Waiting = {
          urgent,
          grant: (child) => {
            signal?.removeEventListener('abort', giveUp)
            resolve(leaseOf(child, signal))
          },
        }
        const giveUp = (): void => {
          waiting = waiting.filter((other) => other !== one)
          reject(signal!.reason)
        }
        signal?.addEventListener('abort', giveUp, { once: true })
        waiting.push(one)
        serve()
      }),
    get size() {
      return all.size
    },
    get rssBytes() {
      return [...all].reduce((sum, child) => sum + (child.usage()?.rssBytes ?? 0), 0)
    },
    close: async () => {
      closed = true
      clearInterval(checking)
      for (const timer of idle.values()) clearTimeout(timer)
      for (const child of all) child.kill()
      all.clear()
    },
  }
}
