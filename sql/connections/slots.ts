/**
 * Limits the concurrency of jobs in a worker's queue pool, of its child processes, or of slow reads in an edge. Owners
 * with the fewest slots in use come first, and among them the longest wait. An owner with more than its share thus loses
 * the excess as its running work ends. One extra slot is reserved for owners that have none, so a flood of work from one
 * owner never delays the first work of another.
 *
 * A higher priority comes before that, but a lower one is granted at least every twentieth slot.
 */
export interface Slots {
  /**
   * Reserves up to `max` free slots for an owner and returns their number. Returns 0 if none became free within
   * `waitMs` or before `signal` aborts, or after `close`.
   */
  reserve(owner: number, max: number, waitMs: number, options?: ReserveOptions): Promise<number>
  release(owner: number, count: number): void
  readonly active: number
  /** Number of callers that wait for a slot. */
  readonly waiting: number
  /** Stops granting slots; resolves when all slots are free. */
  close(): Promise<void>
}

export interface ReserveOptions {
  readonly signal?: AbortSignal | undefined
  readonly priority?: Priority
}

/** -1 is high, 1 is low. */
export type Priority = -1 | 0 | 1

/** Decides whose turn it is: that of the highest priority, but that of a lower one after 19 turns without it. */
export class PriorityTurns {
  /** Number of turns since the last one of each priority. */
  readonly #missed: Record<Priority, number> = { [-1]: 0, 0: 0, 1: 0 }

  /** Sorts those who wait; among equal priorities, the order stays. */
  sort<T extends { readonly priority: Priority }>(waiting: readonly T[]): readonly T[] {
    const due = ([1, 0] as const).find((priority) => this.#missed[priority] >= MAX_MISSED_TURNS)
    const rankOf = ({ priority }: T): number => (priority === due ? -2 : priority)
    return waiting.toSorted((a, b) => rankOf(a) - rankOf(b))
  }

  count(priority: Priority, turns = 1): void {
    for (const other of PRIORITIES) this.#missed[other] += turns
    this.#missed[priority] = 0
  }
}

const PRIORITIES = [-1, 0, 1] as const
const MAX_MISSED_TURNS = 19

/** @param canGrow false while no slot may be added to those in use. It is asked when slots are reserved or released. */
export function createSlots(count: number, canGrow = (): boolean => true): Slots {
  return new FairSlots(count, canGrow)
}

interface Waiter {
  readonly owner: number
  readonly max: number
  readonly priority: Priority
  readonly resolve: (count: number) => void
}

class FairSlots implements Slots {
  readonly #count: number
  readonly #canGrow: () => boolean
  readonly #byOwner = new Map<number, number>()
  readonly #onIdle: (() => void)[] = []
  readonly #turns = new PriorityTurns()
  #waiting: readonly Waiter[] = []
  #active = 0
  #isClosed = false

  constructor(count: number, canGrow: () => boolean) {
    this.#count = count
    this.#canGrow = canGrow
  }

  get active(): number {
    return this.#active
  }

  get waiting(): number {
    return this.#waiting.length
  }

  reserve(owner: number, max: number, waitMs: number, options: ReserveOptions = {}): Promise<number> {
    const { signal, priority = 0 } = options
    if (this.#isClosed) return Promise.resolve(0)
    const free = this.#waiting.length === 0 && this.#isOpen() ? this.#freeFor(owner) : 0
    if (free > 0) return Promise.resolve(this.#grant(owner, Math.min(free, max), priority))
    if (waitMs <= 0 || signal?.aborted) return Promise.resolve(0)
    return new Promise((resolve) => {
      const giveUp = (): void => {
        this.#waiting = this.#waiting.filter((other) => other !== waiter)
        waiter.resolve(0)
      }
      const timer = Number.isFinite(waitMs) ? setTimeout(giveUp, waitMs) : undefined
      signal?.addEventListener('abort', giveUp, { once: true })
      const waiter: Waiter = {
        owner,
        max,
        priority,
        resolve: (n) => {
          clearTimeout(timer)
          signal?.removeEventListener('abort', giveUp)
          resolve(n)
        },
      }
      this.#waiting = [...this.#waiting, waiter]
      this.#grantWaiting()
    })
  }

  release(owner: number, n: number): void {
    if (n === 0) return
    this.#active -= n
    const left = this.#activeOf(owner) - n
    if (left > 0) this.#byOwner.set(owner, left)
    else this.#byOwner.delete(owner)
    this.#grantWaiting()
    if (this.#active === 0) for (const resolve of this.#onIdle.splice(0)) resolve()
  }

  close(): Promise<void> {
    this.#isClosed = true
    for (const one of this.#waiting) one.resolve(0)
    this.#waiting = []
    return this.#active === 0 ? Promise.resolve() : new Promise((resolve) => this.#onIdle.push(resolve))
  }

  #activeOf(owner: number): number {
    return this.#byOwner.get(owner) ?? 0
  }

  #isOpen(): boolean {
    return this.#active === 0 || this.#canGrow()
  }

  #freeFor(owner: number): number {
    const free = this.#count - this.#active
    return free >= 0 && this.#activeOf(owner) === 0 ? Math.max(1, free) : Math.max(0, free)
  }

  #grant(owner: number, n: number, priority: Priority): number {
    this.#turns.count(priority, n)
    this.#active += n
    this.#byOwner.set(owner, this.#activeOf(owner) + n)
    return n
  }

  #grantWaiting(): void {
    while (this.#waiting.length > 0 && this.#isOpen()) {
      // Sorting is stable, so among equals the longest wait comes first.
      const fitting = this.#waiting
        .filter(({ owner }) => this.#freeFor(owner) > 0)
        .toSorted((a, b) => this.#activeOf(a.owner) - this.#activeOf(b.owner))
      const [next] = this.#turns.sort(fitting)
      if (next === undefined) return
      const share = Math.ceil(this.#freeFor(next.owner) / this.#waiting.length)
      this.#waiting = this.#waiting.filter((one) => one !== next)
      next.resolve(this.#grant(next.owner, Math.min(share, next.max), next.priority))
    }
  }
}
