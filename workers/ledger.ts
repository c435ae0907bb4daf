import { setTimeout as delay } from 'node:timers/promises'
import type { Database } from '../sql/db.ts'
import { Failure } from '../sql/errors.ts'
import {
  type Claimed,
  claimAndTell,
  claimJobs,
  endJobs,
  type FinishEntry,
  type ProgressEntry,
  storeProgress,
} from '../sql/jobs.ts'
import { MOST_TOLD, type Publisher } from '../sql/notify.ts'
import { beginJobs, type Taken, takeJobs, takenOf, type Wanted } from '../sql/staged.ts'
import type { Log } from '../tasks/log.ts'
import { createFloors, type Floors } from './floors.ts'
import { createHolds, type Holds } from './holds.ts'
import { createPace, type Pace } from './pace.ts'

/**
 * What this process tells the database about its jobs, in batches: while one statement is under way the next one
 * fills up, so the busier the process, the more jobs share a commit. Per job the order of calls is kept. An outage
 * delays, and never drops, what was said.
 */
export interface Ledger {
  /** Takes a job for this worker; null when the delivery is stale or the job is no longer there to run. */
  claim(id: string, delivery: number): Promise<Claimed | null>
  /** Takes staged jobs of a lane, at most `most`, owner by owner. @throws when the database does not answer. */
  take(wanted: Wanted): Promise<readonly Claimed[]>
  progress(entry: ProgressEntry): void
  /** Resolves once the end is stored (true) or refused because the attempt is not the running one (false). */
  finish(entry: FinishEntry): Promise<boolean>
  /** What the database says that this process holds: jobs that it does not know of are let go. */
  reconcile(holds: readonly string[]): void
  /** Resolves when nothing is left to store. */
  idle(): Promise<void>
}

export interface LedgerOptions {
  readonly db: Database
  readonly publisher: Publisher
  readonly log: Log
  readonly leaseId: () => string
  /** Called for an attempt whose progress the database refused: it has been taken over. */
  readonly onSuperseded: (id: string, attempt: number) => void
}

// Enough to amortize a commit; more would only hold row locks longer.
const MOST_ENTRIES = 500
// Readers are told every 25 ms: between two of those, one statement is enough for what a busy job says.
const GATHER_MS = 15
// While a statement ends some jobs, so many more are worth another one beside it.
const WORTHWHILE = 256
const MOST_AT_ONCE = 2
// What a task emits, such as the pieces of an answer, is waited for: only what comes at the same moment is kept for it.
const GATHER_EVENTS_MS = 2

interface Waiting<T, R> {
  readonly item: T
  readonly resolve: (result: R) => void
}

export function createLedger(options: LedgerOptions): Ledger {
  const claims: Waiting<{ id: string; delivery: number }, Claimed | null>[] = []
  const progress: ProgressEntry[] = []
  const finishes: Waiting<FinishEntry, boolean>[] = []
  const lanes = new Map<string, Lane>()
  const holds = createHolds({
    db: options.db,
    log: options.log,
    onLate: () => {
      writing ??= writeLoop()
    },
  })
  let claiming: Promise<void> | null = null
  let writing: Promise<void> | null = null
  const ending = new Set<Promise<void>>()
  let enough = (): void => {}
  let gathered = 0
  let events = false
  let hurry = (): void => {}

  const laneOf = ({ queue, lane }: Wanted): Lane => {
    const key = `${queue}/${lane}`
    const known = lanes.get(key) ?? {
      floors: createFloors(),
      news: createPace(0.05),
      whole: createPace(0.01),
    }
    lanes.set(key, known)
    return known
  }

  const claimLoop = async (): Promise<void> => {
    await nextTurn()
    while (claims.length > 0) await claimBatch(options, claims.splice(0, MOST_ENTRIES))
    claiming = null
  }

  /** Lets progress come together; the first of a burst goes at once, and no end waits for it. */
  const gather = async (): Promise<void> => {
    for (;;) {
      const left = gathered + (events ? GATHER_EVENTS_MS : GATHER_MS) - performance.now()
      if (finishes.length > 0 || left <= 0) return
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left)
        hurry = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
  }

  /** Of jobs that are held it is written that they run; of those that have their fence up, only if `waits`. */
  const begin = async (ids: readonly string[], waits = true): Promise<void> => {
    const held = [...new Set(ids)].filter((id) => holds.since(id) !== null)
    while (held.length > 0) {
      const some = held.splice(0, MOST_ENTRIES)
      const passed = await untilStored(options.log, () => options.db.any(beginJobs(some, waits)))
      const fenced = new Set(passed.map(({ id }) => id))
      for (const id of some) {
        if (fenced.has(id)) continue
        holds.settle(id)
        options.publisher.mark(id)
      }
    }
  }

  const endDone = (batch: readonly Waiting<FinishEntry, boolean>[]): void => {
    const one: Promise<void> = finishBatch(options, holds, begin, batch).then(() => {
      ending.delete(one)
    })
    ending.add(one)
  }

  /** Waits for the statements that end jobs; where another batch has come together, only until one more may begin. */
  const ended = async (): Promise<void> => {
    while (ending.size > (finishes.length < WORTHWHILE ? 0 : MOST_AT_ONCE - 1)) {
      const more = new Promise<void>((resolve) => {
        enough = resolve
      })
      await Promise.race([...ending, more])
    }
  }

  const writeLoop = async (): Promise<void> => {
    await nextTurn()
    do {
      if (progress.length > 0) await gather()
      gathered = performance.now()
      events = false
      // All progress said before these ends is stored before them.
      const ends = finishes.splice(0, MOST_ENTRIES)
      while (progress.length > 0) {
        const some = progress.splice(0, MOST_ENTRIES)
        await begin(some.map(({ id }) => id))
        await progressBatch(options, some)
      }
      // What is done, as most is, goes by itself: that is faster.
      const done = ends.filter(isDone)
      if (done.length > 0) endDone(done)
      await ended()
      const others = ends.filter((end) => !isDone(end))
      await begin(others.map(({ item }) => item.id))
      if (others.length > 0) await finishBatch(options, holds, begin, others)
      await begin(holds.late(), false)
    } while (progress.length > 0 || finishes.length > 0)
    writing = null
  }

  return {
    claim: (id, delivery) =>
      new Promise((resolve) => {
        claims.push({ item: { id, delivery }, resolve })
        claiming ??= claimLoop()
      }),
    take: async (wanted) => {
      const taken = await holds.taking((spent) => takeFrom(laneOf(wanted), options, wanted, spent))
      for (const { hold, jobs } of taken) {
        const ids = jobs.map(({ id }) => id)
        if (hold !== null) holds.took(hold, ids)
        else for (const id of ids) options.publisher.mark(id)
      }
      return taken.flatMap(({ jobs }) => jobs)
    },
    progress: (entry) => {
      progress.push(entry)
      if (entry.kind !== 'status' && !events) {
        events = true
        hurry()
      }
      writing ??= writeLoop()
    },
    finish: (item) =>
      new Promise((resolve) => {
        finishes.push({ item, resolve })
        hurry()
        if (finishes.length === WORTHWHILE) enough()
        writing ??= writeLoop()
      }),
    reconcile: holds.reconcile,
    idle: async () => {
      while (writing !== null || claiming !== null) await Promise.all([writing, claiming])
      await holds.drop()
    },
  }
}

/** What is known of the staged jobs of a lane. */
interface Lane {
  readonly floors: Floors
  /** Of looking for those of other owners. */
  readonly news: Pace
  /** Of looking at all of them. */
  readonly whole: Pace
}

const NOBODY: ReadonlyMap<number, number> = new Map()

/** From the first staged job on; or beyond the floors of those known, with other owners or without: the dearest way that is due. */
async function takeFrom(
  { floors, news, whole }: Lane,
  { db, leaseId }: LedgerOptions,
  wanted: Wanted,
  spent: readonly string[],
): Promise<readonly Taken[]> {
  const known = floors.next()
  if (!whole.due && !news.due && known.size === 0 && spent.length === 0) return []
  const take = async (beyond: ReadonlyMap<number, number>, others: boolean) => {
    const rows = await db.any(takeJobs(leaseId(), wanted, { floors: beyond, others, spent }))
    const taken = rows.map(takenOf)
    for (const { jobs } of taken) floors.took(jobs)
    return taken
  }
  if (whole.due) return whole.spend(() => take(NOBODY, true))
  if (news.due) return news.spend(() => take(known, true))
  return take(known, false)
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

async function claimBatch(
  { db, publisher, log, leaseId }: LedgerOptions,
  batch: readonly Waiting<{ id: string; delivery: number }, Claimed | null>[],
): Promise<void> {
  const ids = batch.map(({ item }) => item.id)
  const deliveries = batch.map(({ item }) => item.delivery)
  const tells = batch.length <= MOST_TOLD && publisher.takeTurn()
  const claim = tells ? claimAndTell : claimJobs
  const rows = await untilStored(log, () => db.any(claim(leaseId(), ids, deliveries)))
  // A stale delivery and the current one may be asked about at once: only the one that was meant gets the job.
  const claimed = new Map(rows.map((row) => [`${row.id}/${row.delivery}`, row]))
  for (const { item, resolve } of batch) {
    const row = claimed.get(`${item.id}/${item.delivery}`) ?? null
    claimed.delete(`${item.id}/${item.delivery}`)
    if (row !== null && !tells) publisher.mark(row.id)
    resolve(row)
  }
}

async function progressBatch(options: LedgerOptions, batch: readonly ProgressEntry[]): Promise<void> {
  const stored = await isolated(options.log, batch, async (entries) => {
    return new Set((await options.db.any(storeProgress(entries))).map((row) => row.id))
  })
  for (const { id, attempt, kind } of batch) {
    // A task's own events are what streams wait for; of its progress a moment ago is soon enough.
    if (stored.has(id)) options.publisher.mark(id, kind === 'status' ? 'next' : 'soon')
    else options.onSuperseded(id, attempt)
  }
}

const isDone = ({ item }: { item: FinishEntry }): boolean => item.outcome === 'done'

async function finishBatch(
  options: LedgerOptions,
  holds: Holds,
  begin: (ids: readonly string[]) => Promise<void>,
  batch: readonly Waiting<FinishEntry, boolean>[],
): Promise<void> {
  const entries = batch.map(({ item }) => item)
  const store = (some: readonly FinishEntry[]): Promise<Set<string>> => endJobs(options.db, some, holds.since)
  const ended = await isolated(options.log, entries, store, async ({ id, attempt }) => {
    await begin([id])
    const detail = 'The result of the job could not be stored'
    return store([{ id, attempt, outcome: 'failed', code: 'internal', detail }])
  })
  for (const { item, resolve } of batch) {
    holds.settle(item.id)
    if (ended.has(item.id)) options.publisher.mark(item.id)
    resolve(ended.has(item.id))
  }
}

/** Stores a batch; when one of its entries can't be stored at all, that one alone pays for it. */
async function isolated<T extends { id: string }>(
  log: Log,
  batch: readonly T[],
  store: (entries: readonly T[]) => Promise<Set<string>>,
  instead?: (entry: T) => Promise<Set<string>>,
): Promise<Set<string>> {
  try {
    return await untilStored(log, () => store(batch))
  } catch (error) {
    const stored = new Set<string>()
    for (const entry of batch) {
      const ids = await untilStored(log, () => store([entry])).catch(() => {
        log.error({ err: error, jobId: entry.id }, 'An entry of the job ledger could not be stored')
        return instead === undefined ? new Set([entry.id]) : untilStored(log, () => instead(entry))
      })
      for (const id of ids) stored.add(id)
    }
    return stored
  }
}

/** Repeats through outages and deadlocks, for as long as they last; other errors are the statement's own. */
async function untilStored<T>(log: Log, store: () => Promise<T>): Promise<T> {
  for (let failures = 0; ; failures++) {
    try {
      return await store()
    } catch (error) {
      if (!(error instanceof Failure && error.retryable)) throw error
      if (failures === 0) log.warn({ err: error }, 'The job ledger waits for the database')
      await delay(Math.min(50 * 2 ** failures, 1000))
    }
  }
}
