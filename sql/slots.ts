/**
 * Limits the concurrency of jobs in a worker's queue pool, or of slow reads in an edge. Owners with the fewest slots in
 * use come first, and among them the longest wait. An owner with more than its share thus loses the excess as its
 * running work ends. One extra slot is reserved for owners that have none, so a flood of work from one owner never
 * delays the first work of another.
 */
export interface Slots {
  /**
   * Reserves up to `max` free slots for an owner and returns their number. Returns 0 if none became free within
   * `waitMs`, or after `close`.
   */
  reserve(owner: number, max: number, waitMs: number): Promise<number>
  release(owner: number, count: number): void
  readonly active: number
  /** Stops granting slots; resolves when all slots are free. */
  close(): Promise<void>
}

export function createSlots(count: number): Slots {
  return new FairSlots(count)
}

interface Waiter {
  readonly owner: number
  readonly max: number
  readonly resolve: (count: number) => void
}

class FairSlots implements Slots {
  readonly #count: number
  readonly #byOwner = new Map<number, number>()
  readonly #onIdle: (() => void)[] = []
  #waiting: readonly Waiter[] = []
  #active = 0
  #isClosed = false

  constructor(count: number) {
    this.#count = count
  }

  get active(): number {
    return this.#active
  }

  reserve(owner: number, max: number, waitMs: number): Promise<number> {
    if (this.#isClosed) return Promise.resolve(0)
    const free = this.#waiting.length === 0 ? this.#freeFor(owner) : 0
    if (free > 0) return Promise.resolve(this.#grant(owner, Math.min(free, max)))
    return new Promise((resolve) => {
      const giveUp = (): void => {
        this.#waiting = this.#waiting.filter((other) => other !== waiter)
        resolve(0)
      }
      const timer = setTimeout(giveUp, waitMs)
      const waiter: Waiter = {
        owner,
        max,
        resolve: (n) => {
          clearTimeout(timer)
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

  #freeFor(owner: number): number {
    const free = this.#count - this.#active
    return free >= 0 && this.#activeOf(owner) === 0 ? Math.max(1, free) : Math.max(0, free)
  }

  #grant(owner: number, n: number): number {
    this.#active += n
    this.#byOwner.set(owner, this.#activeOf(owner) + n)
    return n
  }

  #grantWaiting(): void {
    for (;;) {
      // The sort is stable, so among equals the longest wait comes first.
      const [next] = this.#waiting
        .filter(({ owner }) => this.#freeFor(owner) > 0)
        .toSorted((a, b) => this.#activeOf(a.owner) - this.#activeOf(b.owner))
      if (next === undefined) return
      const share = Math.ceil(this.#freeFor(next.owner) / this.#waiting.length)
      this.#waiting = this.#waiting.filter((one) => one !== next)
      next.resolve(this.#grant(next.owner, Math.min(share, next.max)))
    }
  }
}
