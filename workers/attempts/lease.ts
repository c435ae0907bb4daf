import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { notifyWorkerChange } from '../../sql/connections/notify.ts'
import type { Database } from '../../sql/db.ts'
import { rescueRunningJobs } from '../../sql/jobs/jobs.ts'
import {
  deleteLease,
  insertLease,
  listRunningJobs,
  type RunningJobs,
  renewLease,
  type WorkerLoad,
} from '../../sql/jobs/leases.ts'
import type { Log } from '../../tasks/platform/log.ts'
import { type Periodic, runPeriodically } from '../../tasks/platform/periodic.ts'
import { createCostThrottle } from './throttle.ts'

/** Proof that this process is alive, by the database's clock. When it expires, another worker takes over its jobs. */
export interface Lease {
  readonly id: string
  /** Renews immediately, to store a changed list of queue pools. */
  renew(): void
  close(): Promise<void>
}

export interface LeaseOptions {
  readonly db: Database
  readonly log: Log
  readonly queues: readonly string[]
  /** Ids of the queue pools whose locks on deliveries this process holds. */
  readonly poolIds: () => readonly string[]
  readonly threads: () => number
  /** Returns the number of threads that have a job. */
  readonly busy: () => number
  /** Returns the resident memory of this process and its children. */
  readonly memoryBytes: () => number
  /** Returns the ids of the jobs that run here. */
  readonly running: () => readonly string[]
  /**
   * Receives the jobs that the database lists as running here: all of them if `isFull`, else only those in `running`.
   */
  readonly onHeartbeat: (jobs: RunningJobs, isFull: boolean) => void
  readonly onLost: () => void
  readonly onRescued: (jobIds: readonly string[]) => Promise<void> | void
  /** Lifetime of the lease without renewal, in ms. */
  readonly ttlMs: number
}

// Number of renewals per lifetime. Each also checks the leases of other workers. With a lifetime of two seconds, a job
// whose worker was killed runs again within three.
const RENEWALS_PER_TTL = 4
// Number of checks of all running jobs per lifetime. They find what lost answers and dead rescuers have left.
const CHECKS_PER_TTL = 2

/** Inserts a lease and renews it until it is closed. */
export async function holdLease(options: LeaseOptions): Promise<Lease> {
  const lease = new HeldLease(options)
  await lease.start()
  return lease
}

class HeldLease implements Lease {
  readonly #options: LeaseOptions
  // A transaction that holds an old snapshot makes checks slow: limit their share of the time.
  readonly #throttle = createCostThrottle(0.01)
  #id: string = randomUUID()
  #renewals: Periodic | null = null
  #checks: Periodic | null = null
  #rescuing: Promise<void> | null = null
  #isClosed = false

  constructor(options: LeaseOptions) {
    this.#options = options
  }

  get id(): string {
    return this.#id
  }

  async start(): Promise<void> {
    const { ttlMs } = this.#options
    await this.#insert(this.#id)
    this.#renewals = runPeriodically(ttlMs / RENEWALS_PER_TTL, () => this.#renew(), this.#onError)
    const check = () => (this.#throttle.isReady ? this.#throttle.run(() => this.#check()) : null)
    this.#checks = runPeriodically(ttlMs / CHECKS_PER_TTL, check, this.#onError)
  }

  renew(): void {
    this.#renewals?.request()
  }

  async close(): Promise<void> {
    const { db, log } = this.#options
    this.#isClosed = true
    // Stop first: a renewal after the deletion would find the lease lost and insert a new one.
    await Promise.all([this.#renewals?.stop(), this.#checks?.stop()])
    await this.#rescuing
    await db
      .run(deleteLease(this.#id))
      .catch((error) => log.warn({ err: error }, 'Failed to delete the lease'))
    await this.#notify()
  }

  async #insert(id: string): Promise<void> {
    const { db, queues, ttlMs } = this.#options
    const name = `${hostname()}/${process.pid}`
    await db.run(insertLease({ id, name, queues, load: this.#usage() }, ttlMs))
    await this.#notify()
  }

  // Errors are harmless: listeners that miss the notification read the table a little later.
  async #notify(): Promise<void> {
    const { db, log } = this.#options
    await db
      .run(notifyWorkerChange())
      .catch((error) => log.warn({ err: error }, 'Failed to send a notification'))
  }

  async #renew(): Promise<void> {
    const { db, ttlMs, running } = this.#options
    const row = await db.maybeOne(renewLease(this.#id, this.#usage(), ttlMs, running()))
    if (row === null) await this.#replace()
    else this.#receive(row, false)
  }

  async #check(): Promise<void> {
    const id = this.#id
    const row = await this.#options.db.one(listRunningJobs(id))
    // The list of a lease that was replaced meanwhile says nothing about the jobs that run here.
    if (id === this.#id) this.#receive(row, true)
  }

  #receive(jobs: RunningJobs, isFull: boolean): void {
    this.#options.onHeartbeat(jobs, isFull)
    if (jobs.must_rescue) this.#rescuing ??= this.#rescue()
  }

  // Use the new id only once its row is in the table: other workers take over jobs whose lease has no row.
  async #replace(): Promise<void> {
    const { log, onLost } = this.#options
    log.warn({ lease: this.#id }, 'The lease is lost: other workers take over the jobs of this worker')
    onLost()
    const newId = randomUUID()
    await this.#insert(newId)
    this.#id = newId
  }

  /** Takes over the jobs of workers whose lease has expired. Does not delay the renewals. Never rejects. */
  async #rescue(): Promise<void> {
    const { db, log, ttlMs, onRescued } = this.#options
    try {
      while (!this.#isClosed) {
        const rescued = await db.any(rescueRunningJobs({ lease: this.#id, steadyMs: ttlMs }))
        if (rescued.length === 0) break
        log.warn({ jobs: rescued.map((row) => row.id) }, 'Rescued jobs from a worker whose lease has expired')
        await onRescued(rescued.map((row) => row.id))
      }
    } catch (error) {
      this.#onError(error)
    }
    this.#rescuing = null
  }

  readonly #onError = (error: unknown): void =>
    this.#options.log.warn({ err: error }, 'Failed to maintain the lease')

  #usage(): WorkerLoad {
    const { poolIds, threads, busy, memoryBytes } = this.#options
    return { poolIds: poolIds(), threads: threads(), busy: busy(), memoryBytes: memoryBytes() }
  }
}
