import { setTimeout as delay } from 'node:timers/promises'
import type { Database } from '../../sql/db.ts'
import { Failure } from '../../sql/errors.ts'
import {
  type Claimed,
  claimedOf,
  claimJobs,
  type Delivery,
  sendAgain,
  type Wanted,
} from '../../sql/jobs/claims.ts'
import { endJobs, type FinishEntry, type ProgressEntry, storeProgress } from '../../sql/jobs.ts'
import { MAX_IDS_PER_PAYLOAD, type Publisher } from '../../sql/notify.ts'
import type { Log } from '../../tasks/log.ts'

/**
 * Writes what this process does with its jobs to the database, in batches: while one statement is under way, the next
 * one fills up, so the busier the process, the more jobs share a commit. The order of calls is kept per job. An outage
 * delays writes, but never drops them.
 */
export interface Ledger {
  /** Claims the jobs of a delivery for this worker, in order, at most `places` of them. */
  claim(delivery: Delivery, places: number): Promise<readonly Claimed[]>
  /** How many claim statements have been answered, and whether one is under way. */
  readonly claims: { readonly answered: number; readonly isUnderWay: boolean }
  /** Puts a delivery back for other workers. */
  sendAgain(delivery: Delivery): Promise<void>
  progress(entry: ProgressEntry): void
  /** Resolves once the outcome is stored (true) or refused because the attempt is not the running one (false). */
  finish(entry: FinishEntry): Promise<boolean>
  /** Resolves when nothing is left to store. */
  idle(): Promise<void>
}

export interface LedgerOptions {
  readonly db: Database
  readonly publisher: Publisher
  readonly log: Log
  readonly leaseId: () => string
  /** How log lines name a job. */
  readonly about: (id: string) => object
  /** Called for an attempt whose progress the database refused: it has been taken over. */
  readonly onSuperseded: (id: string, attempt: number) => void
}

// Enough to amortize a commit, and the claim of a whole delivery: with half as many a job costs a tenth more, and the worker waits
// more often. More would only hold row locks longer.
const MAX_ENTRIES = 1000
// Readers are notified every 25 ms: one statement per interval is enough for the progress of a busy job.
const GATHER_MS = 15
// After this time a delivery that finds no slot here is offered to other workers, in the queue's order.
const AGAIN_MS = 20
// Clients wait for what a task emits, such as pieces of an answer: only what comes at the same moment shares a batch.
const GATHER_EVENTS_MS = 2

interface Waiting<T, R> {
  readonly item: T
  readonly resolve: (result: R) => void
}

export function createLedger(options: LedgerOptions): Ledger {
  return new BatchedLedger(options)
}

class BatchedLedger implements Ledger {
  readonly #options: LedgerOptions
  readonly #claims: Waiting<Wanted, readonly Claimed[]>[] = []
  readonly #again: Waiting<Delivery, void>[] = []
  readonly #progress: ProgressEntry[] = []
  readonly #finishes: Waiting<FinishEntry, boolean>[] = []
  #answered = 0
  #claiming: Promise<void> | null = null
  #sending: Promise<void> | null = null
  #writing: Promise<void> | null = null
  #gatheredAt = 0
  // Whether the gathered progress includes an event that a task emitted.
  #hasEvents = false
  #flush = (): void => {}

  constructor(options: LedgerOptions) {
    this.#options = options
  }

  get claims() {
    return { answered: this.#answered, isUnderWay: this.#claiming !== null }
  }

  claim(delivery: Delivery, places: number): Promise<readonly Claimed[]> {
    return new Promise((resolve) => {
      this.#claims.push({ item: { delivery, places }, resolve })
      this.#claiming ??= this.#claimLoop()
    })
  }

  sendAgain(item: Delivery): Promise<void> {
    return new Promise((resolve) => {
      this.#again.push({ item, resolve })
      this.#sending ??= this.#sendLoop()
    })
  }

  progress(entry: ProgressEntry): void {
    this.#progress.push(entry)
    if (entry.kind !== 'status' && !this.#hasEvents) {
      this.#hasEvents = true
      this.#flush()
    }
    this.#writing ??= this.#writeLoop()
  }

  finish(item: FinishEntry): Promise<boolean> {
    return new Promise((resolve) => {
      this.#finishes.push({ item, resolve })
      this.#flush()
      this.#writing ??= this.#writeLoop()
    })
  }

  async idle(): Promise<void> {
    while (this.#writing !== null || this.#claiming !== null || this.#sending !== null)
      await Promise.all([this.#writing, this.#claiming, this.#sending])
  }

  async #claimLoop(): Promise<void> {
    await nextTurn()
    while (this.#claims.length > 0) {
      await claimAll(this.#options, this.#claims.splice(0, MAX_ENTRIES))
      this.#answered++
    }
    this.#claiming = null
  }

  /**
   * What outages and lost answers have doubled becomes one again: a busy worker would send two of everything from then on, and
   * be busy with that.
   */
  async #sendLoop(): Promise<void> {
    const { db, log } = this.#options
    await nextTurn()
    while (this.#again.length > 0) {
      const batch = this.#again.splice(0, MAX_ENTRIES)
      const deliveries = byMailbox(batch, ({ item }) => item).map((group) =>
        unionOf(group.map(({ item }) => item)),
      )
      await untilStored(log, () => db.run(sendAgain(deliveries, AGAIN_MS))).catch((error) => {
        // The repair sends others.
        log.error({ err: error }, 'Deliveries could not be put back')
      })
      for (const { resolve } of batch) resolve()
    }
    this.#sending = null
  }

  async #writeLoop(): Promise<void> {
    await nextTurn()
    do {
      if (this.#progress.length > 0) await this.#gather()
      this.#gatheredAt = performance.now()
      this.#hasEvents = false
      // All progress reported before these outcomes is stored before them.
      const ends = this.#finishes.splice(0, MAX_ENTRIES)
      while (this.#progress.length > 0)
        await progressBatch(this.#options, this.#progress.splice(0, MAX_ENTRIES))
      // Jobs that are done, which most are, have a statement of their own: that is faster.
      const done = ends.filter(isDone)
      if (done.length > 0) await finishBatch(this.#options, done)
      const others = ends.filter((end) => !isDone(end))
      if (others.length > 0) await finishBatch(this.#options, others)
    } while (this.#progress.length > 0 || this.#finishes.length > 0)
    this.#writing = null
  }

  /** Waits for more progress to share a statement; the first of a burst goes at once, and no outcome waits for it. */
  async #gather(): Promise<void> {
    for (;;) {
      const gatherMs = this.#hasEvents ? GATHER_EVENTS_MS : GATHER_MS
      const left = this.#gatheredAt + gatherMs - performance.now()
      if (this.#finishes.length > 0 || left <= 0) return
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left)
        this.#flush = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/**
 * Claims a batch; a delivery whose claim fails for good fails alone. It is lost here, and the repair sends another: a worker that
 * ended for it would interrupt all jobs that it runs, and meet it again.
 */
async function claimAll(
  options: LedgerOptions,
  batch: readonly Waiting<Wanted, readonly Claimed[]>[],
): Promise<void> {
  try {
    await claimBatch(options, batch)
  } catch (error) {
    if (batch.length > 1) for (const each of batch) await claimAll(options, [each])
    if (batch.length > 1) return
    const { item, resolve } = batch[0]!
    options.log.error(
      { err: error, mailbox: item.delivery.mailbox },
      'The jobs of a delivery could not be claimed',
    )
    resolve([])
  }
}

async function claimBatch(
  { db, publisher, log, leaseId }: LedgerOptions,
  batch: readonly Waiting<Wanted, readonly Claimed[]>[],
): Promise<void> {
  const notifies = publisher.claimSlot()
  // Of several deliveries of a mailbox the one with the most places gets the jobs.
  const groups = byMailbox(batch, ({ item }) => item.delivery).map((group) =>
    group.toSorted((a, b) => b.item.places - a.item.places),
  )
  const wanted = groups.map((group) => ({
    delivery: unionOf(group.map(({ item }) => item.delivery)),
    places: group[0]!.item.places,
  }))
  const { claims } = await untilStored(log, () => db.one(claimJobs(leaseId(), wanted, notifies)))
  const jobs = claimedOf({ claims })
  if (!notifies || jobs.length > MAX_IDS_PER_PAYLOAD) for (const { id } of jobs) publisher.notify(id)
  const claimed = Map.groupBy(jobs, ({ mailbox }) => mailbox)
  for (const [first, ...others] of groups) {
    first!.resolve(claimed.get(first!.item.delivery.mailbox) ?? [])
    for (const { resolve } of others) resolve([])
  }
}

const byMailbox = <T>(items: readonly T[], deliveryOf: (item: T) => Delivery): readonly T[][] => [
  ...Map.groupBy(items, (item) => deliveryOf(item).mailbox).values(),
]

/** One delivery that covers several of the same mailbox. */
function unionOf(deliveries: readonly Delivery[]): Delivery {
  const lasts = deliveries.flatMap(({ last }) => last ?? [])
  return {
    ...deliveries[0]!,
    first: Math.min(...deliveries.map(({ first }) => first)),
    last: lasts.length < deliveries.length ? null : Math.max(...lasts),
  }
}

async function progressBatch(options: LedgerOptions, batch: readonly ProgressEntry[]): Promise<void> {
  const stored = await isolated(options, batch, async (entries) => {
    return new Set((await options.db.any(storeProgress(entries))).map((row) => row.id))
  })
  for (const { id, attempt, kind } of batch) {
    // Streams wait for a task's own events; its progress may arrive a moment later.
    if (stored.has(id)) options.publisher.notify(id, kind === 'status' ? 'next' : 'soon')
    else options.onSuperseded(id, attempt)
  }
}

const isDone = ({ item }: { item: FinishEntry }): boolean => item.outcome === 'done'

async function finishBatch(
  options: LedgerOptions,
  batch: readonly Waiting<FinishEntry, boolean>[],
): Promise<void> {
  const entries = batch.map(({ item }) => item)
  const store = (some: readonly FinishEntry[]): Promise<Set<string>> => endJobs(options.db, some)
  const ended = await isolated(options, entries, store, ({ id, attempt }) => {
    const detail = 'The result of the job could not be stored'
    return store([{ id, attempt, outcome: 'failed', code: 'internal', detail }])
  })
  for (const { item, resolve } of batch) {
    if (ended.has(item.id)) options.publisher.notify(item.id)
    resolve(ended.has(item.id))
  }
}

/** Stores a batch; an entry that can't be stored at all fails alone. */
async function isolated<T extends { id: string }>(
  { log, about }: LedgerOptions,
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
        log.error({ err: error, ...about(entry.id) }, 'An entry of the job ledger could not be stored')
        return instead === undefined ? new Set([entry.id]) : untilStored(log, () => instead(entry))
      })
      for (const id of ids) stored.add(id)
    }
    return stored
  }
}

/** Repeats through outages and deadlocks, for as long as they last; throws any other error. */
async function untilStored<T>(log: Log, store: () => Promise<T>): Promise<T> {
  for (let failures = 0; ; failures++) {
    try {
      return await store()
    } catch (error) {
      if (!(error instanceof Failure && error.retryable)) throw error
      if (failures === 0) log.warn({ err: error }, 'The job ledger is waiting for the database')
      await delay(Math.min(50 * 2 ** failures, 1000))
    }
  }
}
