/**
 * The slots of one pool of a queue group: so many jobs of it run in this process at once. Who waits longest is served first among
 * those who have the fewest running, so that of several owners none has more than its share for longer than its jobs take. One
 * slot more is kept for an owner who has none: a flood of one never makes another's first job wait.
 */
export interface Slots {
  /** Up to `most` free slots for jobs of an owner; 0 when none came free within `waitMs`, or they are closed. */
  reserve(owner: number, most: number, waitMs: number): Promise<number>
  release(owner: number, count: number): void
  readonly active: number
  /** Nobody gets any more; resolves when all are free. */
  close(): Promise<void>
}

interface Waiting {
  readonly owner: number
  readonly most: number
  readonly resolve: (count: number) => void
}

export function createSlots(count: number): Slots {
  const byOwner = new Map<number, number>()
  let waiting: readonly Waiting[] = []
  let active = 0
  let isClosed = false
  const onIdle: (() => void)[] = []

  const activeOf = (owner: number): number => byOwner.get(owner) ?? 0

  const freeFor = (owner: number): number =>
    active <= count && activeOf(owner) === 0 ? Math.max(1, count - active) : Math.max(0, count - active)

  const take = (owner: number, n: number): number => {
    active += n
    byOwner.set(owner, activeOf(owner) + n)
    return n
  }

  const serve = (): void => {
    for (;;) {
      // Of equals the first, since the order of those who wait is kept.
      const [next] = waiting
        .filter(({ owner }) => freeFor(owner) > 0)
        .toSorted((a, b) => activeOf(a.owner) - activeOf(b.owner))
      if (next === undefined) return
      const share = Math.ceil(freeFor(next.owner) / waiting.length)
      waiting = waiting.filter((one) => one !== next)
      next.resolve(take(next.owner, Math.min(share, next.most)))
    }
  }

  return {
    reserve: (owner, most, waitMs) => {
      if (isClosed) return Promise.resolve(0)
      const free = waiting.length === 0 ? freeFor(owner) : 0
      if (free > 0) return Promise.resolve(take(owner, Math.min(free, most)))
      return new Promise((resolve) => {
        const timer = setTimeout(() => {
          waiting = waiting.filter((other) => other !== one)
          resolve(0)
        }, waitMs)
        const one: Waiting = {
          owner,
          most,
          resolve: (n) => {
            clearTimeout(timer)
            resolve(n)
          },
        }
        waiting = [...waiting, one]
        serve()
      })
    },
    release: (owner, n) => {
      if (n === 0) return
      active -= n
      const left = activeOf(owner) - n
      if (left > 0) byOwner.set(owner, left)
      else byOwner.delete(owner)
      serve()
      if (active === 0) for (const resolve of onIdle.splice(0)) resolve()
    },
    get active() {
      return active
    },
    close: () => {
      isClosed = true
      for (const one of waiting) one.resolve(0)
      waiting = []
      return active === 0 ? Promise.resolve() : new Promise((resolve) => onIdle.push(resolve))
    },
  }
}
