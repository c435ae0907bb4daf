import type { Taken } from '../sql/jobs.ts'

/**
 * Up to where an owner's staged jobs have been taken: whoever goes on from there reads nothing of what lies behind, which
 * under a snapshot that somebody holds open is all that ever was.
 */
export interface Floors {
  /** The floors of the owners known, by owner (0: nobody), each the ordinal of a job. */
  readonly known: ReadonlyMap<number, number>
  /** Jobs were taken, in order. */
  took(jobs: readonly Taken[]): void
}

// A job that is added before another may be committed after it: what was taken in the last moments is looked at again. One
// that was under way for longer is found when the whole is looked at.
const LAG_MS = 250
const FORGET_MS = 60_000

interface Floor {
  latest: number
  candidate: number
  usedAt: number
}

export function createFloors(now: () => number = () => performance.now()): Floors {
  const owners = new Map<number, Floor>()
  const known = new Map<number, number>()
  let movedAt = now()

  const move = (): void => {
    movedAt = now()
    for (const [owner, floor] of owners) {
      if (movedAt - floor.usedAt > FORGET_MS) {
        owners.delete(owner)
        known.delete(owner)
        continue
      }
      known.set(owner, floor.candidate)
      floor.candidate = floor.latest
    }
  }

  return {
    get known() {
      if (now() - movedAt > LAG_MS) move()
      return known
    },
    took: (jobs) => {
      const usedAt = now()
      for (const { owner_id, ordinal } of jobs) {
        const owner = owner_id ?? 0
        const floor = owners.get(owner)
        if (floor !== undefined && ordinal > known.get(owner)!) {
          floor.latest = Math.max(floor.latest, ordinal)
          floor.usedAt = usedAt
          continue
        }
        // New, or one that was late: there may be more like it.
        owners.set(owner, { latest: Math.max(floor?.latest ?? 0, ordinal), candidate: ordinal - 1, usedAt })
        known.set(owner, ordinal - 1)
      }
    },
  }
}
