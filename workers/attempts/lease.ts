import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { Database } from '../../sql/db.ts'
import {
  deleteLease,
  type Heartbeat,
  insertLease,
  renewLease,
  rescueRunningJobs,
  type WorkerLoad,
} from '../../sql/jobs.ts'
import { notifyWorkerChange } from '../../sql/notify.ts'
import type { Log } from '../../tasks/log.ts'
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
  readonly onHeartbeat: (heartbeat: Heartbeat, isFull: boolean) => void
  readonly onLost: () => void
  readonly onRescued: (jobIds: readonly string[]) => Promise<void> | void
  /** Lifetime of the lease without renewal, in ms. */
  readonly ttlMs: number
}

// Number of renewals per lifetime. Each also checks the leases of other workers. With a lifetime of two seconds, a job
// whose worker was killed runs again within three.
const RENEWALS_PER_TTL = 4

/** Inserts a lease and renews it until it is closed. */
export async function holdLease(options: LeaseOptions): Promise<Lease> {
  const lease = new HeldLease(options)
  await lease.start()
  return lease
}

class HeldLease implements Lease {
  readonly #options: LeaseOptions
  readonly #upkeep: Upkeep
  // A transaction that holds an old snapshot makes full heartbeats slow: limit their share of the time.
  readonly #throttle = createCostThrottle(0.01)
  #rescuing: Promise<void> | null = null
  #id: string = randomUUID()
  #replacing: Promise<void> | null = null

  constructor(options: LeaseOptions) {
    this.#options = options
    this.#upkeep = new Upkeep(options.log)
  }

  get id(): string {
    return this.#id
  }

  async start(): Promise<void> {
    await this.#insert(this.#id)
    this.#upkeep.every(this.#options.ttlMs / RENEWALS_PER_TTL, () => this.#renew())
  }

  renew(): void {
    this.#upkeep.trigger(() => this.#renew())
  }

  async close(): Promise<void> {
    const { db, log } = this.#options
    // Stop first: a renewal after the deletion would find the lease lost and insert a new one.
    await this.#upkeep.stop()
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
    const { db, ttlMs, running, onHeartbeat } = this.#options
    const { isReady: isFull } = this.#throttle
    const id = this.#id
    const row = isFull
      ? await this.#throttle.run(() => db.maybeOne(renewLease(id, this.#usage(), ttlMs)))
      : await db.maybeOne(renewLease(id, this.#usage(), ttlMs, running()))
    if (row !== null) {
      onHeartbeat(row, isFull)
      if (row.must_rescue) this.#upkeep.trigger(() => this.#rescue())
      return
    }
    // Two concurrent renewals may both find the lease lost: replace it only once.
    if (id !== this.#id) return
    this.#replacing ??= this.#replace().finally(() => {
      this.#replacing = null
    })
    return this.#replacing
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

  /** Takes over the jobs of workers whose lease has expired. */
  #rescue(): Promise<void> {
    this.#rescuing ??= this.#rescueAll().finally(() => {
      this.#rescuing = null
    })
    return this.#rescuing
  }

  async #rescueAll(): Promise<void> {
    const { db, log, ttlMs, onRescued } = this.#options
    while (!this.#upkeep.isStopped) {
      const rescued = await db.any(rescueRunningJobs({ lease: this.#id, steadyMs: ttlMs }))
      if (rescued.length === 0) return
      log.warn({ jobs: rescued.map((row) => row.id) }, 'Rescued jobs from a worker whose lease has expired')
      await onRescued(rescued.map((row) => row.id))
    }
  }

  #usage(): WorkerLoad {
    const { poolIds, threads, busy, memoryBytes } = this.#options
    return { poolIds: poolIds(), threads: threads(), busy: busy(), memoryBytes: memoryBytes() }
  }
}

/** Runs a lease's statements at intervals and on demand. `stop` waits for running ones. */
class Upkeep {
  readonly #log: Log
  readonly #timers: NodeJS.Timeout[] = []
  readonly #underway = new Set<Promise<void>>()
  #isStopped = false

  constructor(log: Log) {
    this.#log = log
  }

  get isStopped(): boolean {
    return this.#isStopped
  }

  /** Runs the work at this interval. Skips a run while the previous one is still running. */
  every(ms: number, work: () => Promise<void>): void {
    let isBusy = false
    const onTimer = (): void => {
      if (this.#isStopped || isBusy) return
      isBusy = true
      void this.#run(work).finally(() => {
        isBusy = false
      })
    }
    this.#timers.push(setInterval(onTimer, ms))
  }

  trigger(work: () => Promise<void>): void {
    if (!this.#isStopped) void this.#run(work)
  }

  /** Starts no more work; resolves once running work has finished. */
  stop(): Promise<unknown> {
    this.#isStopped = true
    for (const timer of this.#timers) clearInterval(timer)
    return Promise.all(this.#underway)
  }

  /** Runs work that `stop` waits for. */
  #run(work: () => Promise<void>): Promise<void> {
    const done = work()
      .catch((error) => this.#log.warn({ err: error }, 'Failed to maintain the lease'))
      .finally(() => this.#underway.delete(done))
    this.#underway.add(done)
    return done
  }
}
