import type { TakenJob } from '../sql/staged.ts'

/**
 * Up to where an owner's staged jobs have been taken: whoever goes on from there reads nothing of what lies behind, which
 * under a snapshot that somebody holds open is all that ever was.
 */
export interface Floors {
  /** Where the next take goes on, by owner (0: nobody): behind the job of this ordinal. */
  next(): ReadonlyMap<number, number>
  /** The jobs that it brought, in order. */
  took(jobs: readonly TakenJob[]): void
}

// A job that is added before another may be committed after it: what was taken in the last moments is looked at again. One
// that was under way for longer is found when the whole is looked at.
const LOOK_BACK_MS = 250
// No more than one take brings: looking at so many again costs next to nothing.
const FEW = 500
const FORGET_MS = 60_000

interface Floor {
  latest: number
  /** What was the latest when it was looked back. */
  before: number
  usedAt: number
}

export function createFloors(now: () => number = () => performance.now()): Floors {
  const owners = new Map<number, Floor>()
  let lookedBackAt = now()
  let takenSince = 0

  const lookBack = (): ReadonlyMap<number, number> => {
    lookedBackAt = now()
    takenSince = 0
    const from = new Map<number, number>()
    for (const [owner, floor] of owners) {
      from.set(owner, floor.before)
      floor.before = floor.latest
      if (lookedBackAt - floor.usedAt > FORGET_MS) owners.delete(owner)
    }
    return from
  }

  return {
    next: () => {
      if (now() - lookedBackAt > LOOK_BACK_MS) return lookBack()
      const few = takenSince <= FEW
      return new Map(Array.from(owners, ([owner, { latest, before }]) => [owner, few ? before : latest]))
    },
    took: (jobs) => {
      const usedAt = now()
      takenSince += jobs.length
      for (const { owner_id, ordinal } of jobs) {
        const owner = owner_id ?? 0
        const before = Math.min(owners.get(owner)?.before ?? ordinal, ordinal - 1)
        // In order, so that one that was late takes its owner back to where it is: there may be more like it.
        owners.set(owner, { latest: ordinal, before, usedAt })
      }
    },
  }
}
