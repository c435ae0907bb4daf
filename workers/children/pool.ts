import { availableParallelism, totalmem } from 'node:os'
import { fileURLToPath } from 'node:url'
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
const RESET: Limits = { cpuMs: 1000, wallMs: 5000 }
// Of all children together: beyond it whatever may take its time waits for what is under way.
const MOST_BYTES = totalmem() / 2

interface Waiting {
  readonly owner: number
  readonly urgent: boolean
  grant(child: Child): void
  refuse(error: unknown): void
}

/**
 * Makes a pool; children start when they are needed. Those who wait are served in turn, the urgent ones first, then those whose
 * owner has the fewest at work. There is one place more than said, and each of both kinds may have all but one: a long document
 * never holds up somebody who waits for an answer, and those never the documents. And there is one more for the documents of an
 * owner who has none at work: those of another never hold up the first.
 */
export function createChildPool(options: ChildPoolOptions): ChildPool {
  const entry = options.entry ?? fileURLToPath(new URL('./main.ts', import.meta.url))
  const { log, places = availableParallelism(), limits = LIMITS, idleMs = 20_000, checkMs = 100 } = options
  const all = new Set<Child>()
  // With those that are being given back.
  const busy = new Map<Child, Pick<Waiting, 'owner' | 'urgent'>>()
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

  const busyFor = (owner: number): number =>
    [...busy.values()].filter((one) => one.owner === owner && !one.urgent).length

  const isFree = ({ owner, urgent }: Pick<Waiting, 'owner' | 'urgent'>): boolean => {
    const more = !urgent && busyFor(owner) === 0 ? 1 : 0
    const alike = [...busy.values()].filter((one) => one.urgent === urgent).length
    if (busy.size > places + more || alike >= places + more) return false
    return urgent || busy.size === 0 || rssBytes() < MOST_BYTES
  }

  /** Of those that could have a child now the one whose turn it is: of equals who waits longest. */
  const nextOf = (some: readonly Waiting[]): Waiting | undefined =>
    some.filter(isFree).toSorted((a, b) => busyFor(a.owner) - busyFor(b.owner))[0]

  const serve = (): void => {
    while (!closed) {
      const next = waiting.find((one) => one.urgent && isFree(one)) ?? nextOf(waiting)
      if (next === undefined) return
      // One that is being given back is there sooner than a new one.
      if (!next.urgent && idle.size === 0 && returning > 0) return
      waiting = waiting.filter((one) => one !== next)
      try {
        const child = take()
        busy.set(child, next)
        checking ??= setInterval(check, checkMs)
        next.grant(child)
      } catch (error) {
        next.refuse(error)
      }
    }
  }

  const check = (): void => {
    const now = performance.now()
    for (const child of busy.keys()) child.check(now)
  }

  const isLarge = (child: Child): boolean => (child.usage()?.rssBytes ?? 0) > LARGE_BYTES
  const rssBytes = (): number => [...all].reduce((sum, child) => sum + (child.usage()?.rssBytes ?? 0), 0)

  /** Makes room for the next one: the child waits for work when it is clean, and ends when it is not. */
  const giveBack = async (child: Child): Promise<void> => {
    returning++
    if (child.isAlive && !closed && !child.isBusy && !isLarge(child)) {
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
      if (returned) return
      child.kill()
      end()
    }
    if (signal?.aborted) kill()
    else signal?.addEventListener('abort', kill, { once: true })
    return {
      ask: async (kind, request, limit) => {
        signal?.throwIfAborted()
        if (returned && child.isAlive) throw new Error('The child was given back')
        try {
          return (await child.ask(kind, request, limit)) as never
        } catch (error) {
          if (!child.isAlive) {
            if (!signal?.aborted && !closed)
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

  const lease = ({
    owner = 0,
    urgent = false,
    ifFree = false,
    signal,
  }: LeaseOptions = {}): Promise<ChildLease | null> =>
    new Promise((resolve, reject) => {
      if (closed) throw new Error(CLOSED)
      signal?.throwIfAborted()
      const done = (): void => {
        waiting = waiting.filter((other) => other !== one)
        signal?.removeEventListener('abort', giveUp)
      }
      const one: Waiting = {
        owner,
        urgent,
        grant: (child) => {
          done()
          resolve(leaseOf(child, signal))
        },
        refuse: (error) => {
          done()
          reject(error)
        },
      }
      const giveUp = (): void => one.refuse(signal!.reason)
      if (ifFree && (waiting.length > 0 || !isFree(one))) return resolve(null)
      signal?.addEventListener('abort', giveUp, { once: true })
      waiting.push(one)
      serve()
    })

  return {
    lease: lease as Children['lease'],
    get size() {
      return all.size
    },
    get rssBytes() {
      return rssBytes()
    },
    close: async () => {
      closed = true
      clearInterval(checking)
      for (const one of waiting) one.refuse(new Error(CLOSED))
      for (const timer of idle.values()) clearTimeout(timer)
      for (const child of all) child.kill()
      all.clear()
    },
  }
}

const CLOSED = 'The pool of child processes is closed'
