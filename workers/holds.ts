import type { Queries } from '../sql/db.ts'
import { dropHolds, type Hold } from '../sql/staged.ts'
import type { Log } from '../tasks/log.ts'

/**
 * What this process holds: jobs that were taken together and are not written as running, since most are done before anybody
 * could ask. A hold is over when each of its jobs has ended or is written as running.
 */
export interface Holds {
  /** A take, which is told of the holds that are over, to remove them. */
  taking<T>(take: (spent: readonly string[]) => Promise<T>): Promise<T>
  took(hold: Hold, ids: readonly string[]): void
  /** Since when a job is held, as PostgreSQL writes it; null: it is not. */
  since(id: string): string | null
  /** The job has ended, or is written as running. */
  settle(id: string): void
  /** Jobs that have been held for so long that it has to be written that they run. */
  late(): readonly string[]
  /** What the database says that this process holds: a hold that it does not know of is let go. */
  reconcile(held: readonly string[]): void
  /** Removes the holds that are over. */
  drop(): Promise<void>
}

export interface HoldsOptions {
  readonly db: Queries
  readonly log: Log
  /** Some jobs are late. */
  readonly onLate: () => void
  readonly now?: () => number
}

// As long as whoever looks at a job may take it for a waiting one.
const LATE_MS = 100
// How often is looked for those that are late, and for holds that no take has removed.
const LOOK_MS = 50

interface Held {
  readonly hold: Hold
  readonly at: number
  /** Its jobs that have not been settled. */
  left: number
}

export function createHolds({ db, log, onLate, now = () => performance.now() }: HoldsOptions): Holds {
  const jobs = new Map<string, Held>()
  const open = new Set<string>()
  let spent: string[] = []
  const takes = new Set<number>()
  let lastTake = 0
  // Holds that are not known here, and the last take that had begun when they were first heard of.
  let unknown = new Map<string, number>()
  let timer: NodeJS.Timeout | null = null
  let dropping: Promise<void> | null = null

  const late = (): readonly string[] => {
    const before = now() - LATE_MS
    const found: string[] = []
    // In the order in which they were taken.
    for (const [id, { at }] of jobs) {
      if (at > before) break
      found.push(id)
    }
    return found
  }

  const watch = (): void => {
    if (timer !== null || (jobs.size === 0 && spent.length === 0)) return
    timer = setTimeout(() => {
      timer = null
      if (late().length > 0) onLate()
      // One of the next takes does it without a commit of its own.
      if (takes.size === 0) void drop()
      watch()
    }, LOOK_MS)
  }

  const remove = async (): Promise<void> => {
    const ids = spent
    if (ids.length === 0) return
    spent = []
    try {
      await db.run(dropHolds(ids))
    } catch (error) {
      log.warn({ err: error }, 'Holds that are over could not be removed')
      spent.push(...ids)
      watch()
    }
  }

  const drop = (): Promise<void> => {
    dropping ??= remove().finally(() => {
      dropping = null
    })
    return dropping
  }

  return {
    taking: async (take) => {
      const number = ++lastTake
      const ids = spent
      takes.add(number)
      spent = []
      try {
        return await take(ids)
      } catch (error) {
        spent.push(...ids)
        throw error
      } finally {
        takes.delete(number)
        watch()
      }
    },
    took: (hold, ids) => {
      const held = { hold, at: now(), left: ids.length }
      open.add(hold.id)
      for (const id of ids) jobs.set(id, held)
      watch()
    },
    since: (id) => jobs.get(id)?.hold.since ?? null,
    settle: (id) => {
      const held = jobs.get(id)
      if (held === undefined) return
      jobs.delete(id)
      if (--held.left > 0) return
      open.delete(held.hold.id)
      spent.push(held.hold.id)
    },
    late,
    reconcile: (held) => {
      const oldest = Math.min(...takes)
      const still = new Map<string, number>()
      for (const id of held) {
        if (open.has(id) || spent.includes(id)) continue
        const since = unknown.get(id)
        // The answer of its take can't come any more.
        if (since !== undefined && oldest > since) spent.push(id)
        else still.set(id, since ?? lastTake)
      }
      unknown = still
      watch()
    },
    drop,
  }
}
