import { setTimeout as delay } from 'node:timers/promises'
import type { Publisher } from '../../sql/connections/notify.ts'
import type { Database } from '../../sql/db.ts'
import { Failure } from '../../sql/errors.ts'
import {
  type ClaimedJob,
  type ClaimRequest,
  claimJobs,
  type Delivery,
  parseClaims,
  requeueDeliveries,
} from '../../sql/jobs/claims.ts'
import { type FinishEntry, type ProgressEntry, serializeEntries } from '../../sql/jobs/jobs.ts'
import { sendReport } from '../../sql/jobs/reports.ts'
import type { Log } from '../../tasks/platform/log.ts'

/**
 * Batches this process's writes about its jobs. While one statement runs, the next batch fills up, so a busier process
 * has more jobs per commit. Calls keep their order per job. An outage delays writes, but never drops them.
 */
export interface Ledger {
  /** Claims up to `slots` jobs of a delivery for this worker, in order. */
  claim(delivery: Delivery, slots: number): Promise<Claim>
  /** Number of claim statements answered so far; `isUnderWay` is true while one runs. */
  readonly claims: { readonly answered: number; readonly isUnderWay: boolean }
  /** Returns a delivery to the queue, for workers with a free slot. */
  redeliver(delivery: Delivery): Promise<void>
  progress(entry: ProgressEntry): void
  /** Resolves with true once the outcome is stored, or with false if the fence refused it as stale. */
  finish(entry: FinishEntry): Promise<boolean>
  /** Resolves once everything is stored. */
  idle(): Promise<void>
}

export interface Claim {
  readonly jobs: readonly ClaimedJob[]
  /** If false, claim with the delivery again: another transaction holds the lock of the mailbox or its jobs. */
  readonly isDone: boolean
}

export interface LedgerOptions {
  readonly db: Database
  readonly publisher: Publisher
  readonly log: Log
  readonly leaseId: () => string
  /** Returns log fields that identify a job. */
  readonly logFields: (id: string) => object
  /** Called if the fence refused an attempt's progress because another worker has taken the job over. */
  readonly onSuperseded: (id: string, attempt: number) => void
  /** Called if a job becomes due in `ms`: the end of another released it, or its rate allows the next start. */
  readonly onDelayed?: (ms: number) => void
}

// Large enough to amortize a commit and to claim a whole delivery. At 500, a job costs 10 % more and the worker waits
// more often. A larger batch only holds row locks longer.
const MAX_BATCH_SIZE = 1000
// Subscribers are notified every 25 ms, so one statement per interval suffices for the progress of a busy job.
const GATHER_MS = 15
// Short, because clients wait for a task's events, such as pieces of an answer.
const EVENT_GATHER_MS = 2

const NOTHING: Claim = { jobs: [], isDone: true }

interface PendingItem<T, R> {
  readonly item: T
  readonly resolve: (result: R) => void
}

export function createLedger(options: LedgerOptions): Ledger {
  return new BatchedLedger(options)
}

class BatchedLedger implements Ledger {
  readonly #options: LedgerOptions
  readonly #claims: PendingItem<ClaimRequest, Claim>[] = []
  readonly #redeliveries: PendingItem<Delivery, void>[] = []
  readonly #progress: ProgressEntry[] = []
  readonly #finishes: PendingItem<FinishEntry, boolean>[] = []
  #claimsAnswered = 0
  #claiming: Promise<void> | null = null
  #redelivering: Promise<void> | null = null
  #writing: Promise<void> | null = null
  #gatheredAt = 0
  // True if the gathered progress includes an event that a task emitted.
  #hasEvents = false
  // Ends the wait for more progress.
  #flush = (): void => {}

  constructor(options: LedgerOptions) {
    this.#options = options
  }

  get claims() {
    return { answered: this.#claimsAnswered, isUnderWay: this.#claiming !== null }
  }

  claim(delivery: Delivery, slots: number): Promise<Claim> {
    return new Promise((resolve) => {
      this.#claims.push({ item: { delivery, freeSlots: slots }, resolve })
      this.#claiming ??= this.#claimLoop()
    })
  }

  redeliver(item: Delivery): Promise<void> {
    return new Promise((resolve) => {
      this.#redeliveries.push({ item, resolve })
      this.#redelivering ??= this.#redeliverLoop()
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
    while (this.#writing !== null || this.#claiming !== null || this.#redelivering !== null)
      await Promise.all([this.#writing, this.#claiming, this.#redelivering])
  }

  async #claimLoop(): Promise<void> {
    await waitForNextTurn()
    while (this.#claims.length > 0) {
      await claimAll(this.#options, this.#claims.splice(0, MAX_BATCH_SIZE))
      this.#claimsAnswered++
    }
    this.#claiming = null
  }

  /**
   * Returns deliveries to the queue, merged by mailbox. Outages and lost answers create duplicates, which a busy worker
   * would otherwise redeliver forever.
   */
  async #redeliverLoop(): Promise<void> {
    const { db, log } = this.#options
    await waitForNextTurn()
    while (this.#redeliveries.length > 0) {
      const batch = this.#redeliveries.splice(0, MAX_BATCH_SIZE)
      const deliveries = groupByMailbox(batch, ({ item }) => item).map((group) =>
        findFirst(group.map(({ item }) => item)),
      )
      await storeWithRetries(log, () => db.run(requeueDeliveries(deliveries))).catch((error) => {
        // The rescuer will find the jobs of these deliveries.
        log.error({ err: error }, 'Failed to redeliver')
      })
      for (const { resolve } of batch) resolve()
    }
    this.#redelivering = null
  }

  async #writeLoop(): Promise<void> {
    await waitForNextTurn()
    do {
      if (this.#progress.length > 0) await this.#gather()
      this.#gatheredAt = performance.now()
      this.#hasEvents = false
      // All progress reported before these outcomes is stored before them, or with them.
      const finishes = this.#finishes.splice(0, MAX_BATCH_SIZE)
      while (this.#progress.length > MAX_BATCH_SIZE)
        await storeAll(this.#options, this.#progress.splice(0, MAX_BATCH_SIZE), [])
      await storeAll(this.#options, this.#progress.splice(0), finishes)
    } while (this.#progress.length > 0 || this.#finishes.length > 0)
    this.#writing = null
  }

  /** Waits until more progress can share the statement. The first entry of a burst and outcomes do not wait. */
  async #gather(): Promise<void> {
    for (;;) {
      const gatherMs = this.#hasEvents ? EVENT_GATHER_MS : GATHER_MS
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

function waitForNextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/**
 * Claims a batch; after a permanent failure, claims each delivery separately. A delivery that still fails is dropped,
 * and the rescuer sends another. Ending the worker instead would interrupt all its jobs, and the delivery would return.
 */
async function claimAll(
  options: LedgerOptions,
  batch: readonly PendingItem<ClaimRequest, Claim>[],
): Promise<void> {
  try {
    await claimBatch(options, batch)
  } catch (error) {
    if (batch.length > 1) {
      for (const claim of batch) await claimAll(options, [claim])
      return
    }
    const { item, resolve } = batch[0]!
    options.log.error(
      { err: error, mailbox: item.delivery.mailbox },
      'Failed to claim the jobs of a delivery',
    )
    resolve(NOTHING)
  }
}

async function claimBatch(
  { db, publisher, log, leaseId, onDelayed }: LedgerOptions,
  batch: readonly PendingItem<ClaimRequest, Claim>[],
): Promise<void> {
  const notifies = publisher.claimNotify()
  // If several deliveries name the same mailbox, the one with the most slots gets its jobs.
  const groups = groupByMailbox(batch, ({ item }) => item.delivery).map((group) =>
    group.toSorted((a, b) => b.item.freeSlots - a.item.freeSlots),
  )
  const wanted = groups.map((group) => ({
    delivery: findFirst(group.map(({ item }) => item.delivery)),
    freeSlots: group[0]!.item.freeSlots,
  }))
  const result = await storeWithRetries(log, () => db.one(claimJobs(leaseId(), wanted, notifies)))
  const { claims, again, wait_ms, notified } = result
  if (wait_ms !== null) onDelayed?.(Math.max(wait_ms, 0))
  const jobs = parseClaims({ claims })
  if (!notified) for (const { id, seq } of jobs) publisher.notify(id, 'next', seq - 1)
  const claimed = Map.groupBy(jobs, ({ mailbox }) => mailbox)
  const unfinished = new Set(again)
  for (const [first, ...others] of groups) {
    const { mailbox } = first!.item.delivery
    const isDone = !unfinished.has(mailbox)
    first!.resolve({ jobs: claimed.get(mailbox) ?? [], isDone })
    // A delivery that is not done claims again from its own ordinal on, which may be behind those of the others.
    for (const { resolve } of others) resolve({ jobs: [], isDone })
  }
}

const groupByMailbox = <T>(items: readonly T[], deliveryOf: (item: T) => Delivery): readonly T[][] => [
  ...Map.groupBy(items, (item) => deliveryOf(item).mailbox).values(),
]

/** Returns the delivery of a mailbox that covers the jobs of all of them. */
const findFirst = (deliveries: readonly Delivery[]): Delivery =>
  deliveries.reduce((first, other) => (other.first < first.first ? other : first))

/**
 * Stores progress and outcomes; after a permanent failure, each separately. Progress that cannot be stored is dropped, and an
 * outcome becomes a failure.
 */
async function storeAll(
  options: LedgerOptions,
  progress: readonly ProgressEntry[],
  finishes: readonly PendingItem<FinishEntry, boolean>[],
): Promise<void> {
  try {
    await store(options, progress, finishes)
  } catch (error) {
    if (progress.length + finishes.length > 1) {
      for (const entry of progress) await storeAll(options, [entry], [])
      for (const finish of finishes) await storeAll(options, [], [finish])
      return
    }
    const [finish] = finishes
    const { id, attempt } = finish?.item ?? progress[0]!
    options.log.error({ err: error, ...options.logFields(id) }, 'Failed to store an entry of the job ledger')
    if (finish === undefined) return
    const detail = 'The job result could not be stored'
    const item = { id, attempt, outcome: 'failed', code: 'internal', detail } as const
    await store(options, [], [{ ...finish, item }])
  }
}

async function store(
  options: LedgerOptions,
  progress: readonly ProgressEntry[],
  finishes: readonly PendingItem<FinishEntry, boolean>[],
): Promise<void> {
  const { db, publisher, log, onSuperseded, onDelayed } = options
  const report = { progress, ends: serializeEntries(finishes.map(({ item }) => item)) }
  const reported = await storeWithRetries(log, () => sendReport(db, publisher, report))
  const stored = new Set(reported.progressed)
  for (const { id, attempt } of progress) if (!stored.has(id)) onSuperseded(id, attempt)
  const others = new Set(reported.ended)
  for (const { item, resolve } of finishes) {
    resolve(others.has(item.id))
    others.delete(item.id)
  }
  // Jobs that these ends have released may wait for the scheduler.
  if (others.size > 0) onDelayed?.(0)
}

/** Retries through outages and deadlocks, however long they last; throws any other error. */
async function storeWithRetries<T>(log: Log, store: () => Promise<T>): Promise<T> {
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
