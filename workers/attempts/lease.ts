import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { Database } from '../../sql/db.ts'
import {
  deleteLease,
  type Heartbeat,
  insertLease,
  type LeaseUse,
  recoverJobs,
  renewLease,
} from '../../sql/jobs.ts'
import { workerChanged } from '../../sql/notify.ts'
import type { Log } from '../../tasks/log.ts'
import { createCostThrottle } from './throttle.ts'

/** This process's claim to be alive, by the database's clock. When it expires, another worker takes over the jobs. */
export interface Lease {
  readonly id: string
  /** Renews at once, because what it lists has changed. */
  renew(): void
  close(): Promise<void>
}

export interface LeaseOptions {
  readonly db: Database
  readonly log: Log
  readonly queues: readonly string[]
  /** The queue pools that hold deliveries in this process's name. */
  readonly poolIds: () => readonly string[]
  readonly threads: () => number
  /** How many of them have work. */
  readonly busy: () => number
  /** Resident memory of this process and its children. */
  readonly memoryBytes: () => number
  /** The jobs that run here. */
  readonly running: () => readonly string[]
  /** Receives the jobs that the database lists as running here: all of them, or only those among `running`. */
  readonly onHeartbeat: (heartbeat: Heartbeat, full: boolean) => void
  readonly onLost: () => void
  readonly onRecovered: (jobIds: readonly string[]) => Promise<void> | void
  /** How long the lease is valid without renewal. */
  readonly ttlMs: number
}

// Within its lifetime a lease is renewed four times, and other workers' leases are checked eight times. With a lifetime
// of 2 s, a job whose worker was killed runs again within 3 s.
const RENEWALS = 4
const LOOKS = 8

/** Inserts a lease and maintains it until it is closed. */
export async function holdLease(options: LeaseOptions): Promise<Lease> {
  const lease = new HeldLease(options)
  await lease.start()
  return lease
}

class HeldLease implements Lease {
  readonly #options: LeaseOptions
  readonly #upkeep: Upkeep
  // Both statements are fast as long as no transaction holds an old snapshot.
  readonly #heartbeatThrottle = createCostThrottle(0.01)
  readonly #recoveryThrottle = createCostThrottle(0.01)
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
    this.#upkeep.every(this.#options.ttlMs / RENEWALS, () => this.#renew())
    this.#upkeep.every(this.#options.ttlMs / LOOKS, () => this.#recover())
  }

  renew(): void {
    this.#upkeep.trigger(() => this.#renew())
  }

  async close(): Promise<void> {
    const { db, log } = this.#options
    // A renewal after the deletion would consider the lease lost, and leave another one behind.
    await this.#upkeep.stop()
    await db
      .run(deleteLease(this.#id))
      .catch((error) => log.warn({ err: error }, 'The lease could not be deleted'))
    await this.#notify()
  }

  async #insert(id: string): Promise<void> {
    const { db, queues, ttlMs } = this.#options
    const name = `${hostname()}/${process.pid}`
    await db.run(insertLease({ id, name, queues, use: this.#use() }, ttlMs))
    await this.#notify()
  }

  // For listeners; those that miss it read the table a little later.
  async #notify(): Promise<void> {
    const { db, log } = this.#options
    await db.run(workerChanged()).catch((error) => log.warn({ err: error }, 'A notification was not sent'))
  }

  async #renew(): Promise<void> {
    const { db, ttlMs, running, onHeartbeat } = this.#options
    const { ready: isFull } = this.#heartbeatThrottle
    const renewed = this.#id
    const row = isFull
      ? await this.#heartbeatThrottle.run(() => db.maybeOne(renewLease(renewed, this.#use(), ttlMs)))
      : await db.maybeOne(renewLease(renewed, this.#use(), ttlMs, running()))
    if (row !== null) return onHeartbeat(row, isFull)
    // Two concurrent renewals may find the same lease lost; it is replaced once.
    if (renewed !== this.#id) return
    this.#replacing ??= this.#replace().finally(() => {
      this.#replacing = null
    })
    return this.#replacing
  }

  // Jobs may be claimed only under a lease that is in the table: under any other they would be taken over at once.
  async #replace(): Promise<void> {
    const { log, onLost } = this.#options
    log.warn({ lease: this.#id }, 'The lease was lost: the jobs of this worker have been taken over')
    onLost()
    const fresh = randomUUID()
    await this.#insert(fresh)
    this.#id = fresh
  }

  /** Takes over the jobs of workers that are gone. */
  async #recover(): Promise<void> {
    const { db, log, ttlMs, onRecovered } = this.#options
    // Those that the first look leaves have no lease any more, and are found by looking at the whole.
    for (let whole = this.#recoveryThrottle.ready; !this.#upkeep.isStopped; whole = true) {
      const judge = { lease: this.#id, steadyMs: ttlMs }
      const recovered = whole
        ? await this.#recoveryThrottle.run(() => db.any(recoverJobs(judge)))
        : await db.any(recoverJobs(judge, false))
      if (recovered.length === 0) return
      log.warn({ jobs: recovered.map((row) => row.id) }, 'Took over the jobs of a worker that is gone')
      await onRecovered(recovered.map((row) => row.id))
    }
  }

  #use(): LeaseUse {
    const { poolIds, threads, busy, memoryBytes } = this.#options
    return { poolIds: poolIds(), threads: threads(), busy: busy(), memoryBytes: memoryBytes() }
  }
}

/** Runs the upkeep of a lease, at intervals and on demand. It waits for a database that is late. */
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

  /** Runs the work at this interval, never twice at the same time. */
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

  /** Runs the work at once. */
  trigger(work: () => Promise<void>): void {
    if (!this.#isStopped) void this.#run(work)
  }

  /** Starts nothing more; resolves when what is under way has ended. */
  stop(): Promise<unknown> {
    this.#isStopped = true
    for (const timer of this.#timers) clearInterval(timer)
    return Promise.all(this.#underway)
  }

  /** Runs work that `stop` has to wait for. */
  #run(work: () => Promise<void>): Promise<void> {
    const done = work()
      .catch((error) => this.#log.warn({ err: error }, 'The lease could not be maintained'))
      .finally(() => this.#underway.delete(done))
    this.#underway.add(done)
    return done
  }
}
