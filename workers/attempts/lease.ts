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

/** This process's claim to be alive, on the database's clock. Whoever sees another's run out takes its jobs over. */
export interface Lease {
  readonly id: string
  /** Renews at once: what it names has changed. */
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
  /** Resident memory of this process and its children. */
  readonly memoryBytes: () => number
  /** What runs here. */
  readonly running: () => readonly string[]
  /** What the database holds to be running here; all of it, or only what of `running` it does. */
  readonly onHeartbeat: (heartbeat: Heartbeat, whole: boolean) => void
  readonly onLost: () => void
  readonly onRecovered: (jobIds: readonly string[]) => void
  /** A connection has gone silent: nothing here can end a query on it, but a new process can do without. */
  readonly onSilence: (error: Error) => void
  /** How long it is good for without being renewed. */
  readonly ttlMs: number
}

// Of a lease's time: it is renewed four times within it, and others' are looked at eight times. With 2 s, a job whose
// worker was killed runs again within 3 s.
const RENEWALS = 4
const LOOKS = 8
// Of a lease's time, too: longer than any answer takes, shorter than the kernel takes to give up a silent connection (a
// quarter of an hour).
const HUNG = 5
// Any other statement may take 60 s on its server.
const HUNG_OTHER_MS = 75_000

export async function holdLease(options: LeaseOptions): Promise<Lease> {
  const { db, log, ttlMs } = options
  const renewMs = ttlMs / RENEWALS
  const hungMs = ttlMs * HUNG
  // Both are quick as long as no snapshot is held open.
  const [asking, searching] = [createCostThrottle(0.01), createCostThrottle(0.01)]
  let id = randomUUID() as string
  let renewedAt = Date.now()
  // A process that has just been cut off itself is no judge of others: they may have been, too.
  let judgeFrom = 0
  let stopped = false
  let replacing: Promise<void> | null = null
  const under = new Set<Promise<void>>()

  const use = (): LeaseUse => ({
    poolIds: options.poolIds(),
    threads: options.threads(),
    memoryBytes: options.memoryBytes(),
  })

  const insert = async (fresh: string): Promise<void> => {
    const name = `${hostname()}/${process.pid}`
    await db.run(insertLease({ id: fresh, name, queues: options.queues, use: use() }, ttlMs))
    await tell()
  }

  // For those who watch; whoever misses it reads the table a little later.
  const tell = async (): Promise<void> => {
    await db.run(workerChanged()).catch((error) => log.warn({ err: error }, 'A notification was not sent'))
  }

  // Only a lease that is in the table may claim: a job under any other would be taken over at once.
  const replace = async (): Promise<void> => {
    log.warn({ lease: id }, 'The lease was lost: the jobs of this worker have been taken over')
    options.onLost()
    const fresh = randomUUID()
    await insert(fresh)
    id = fresh
  }

  const renew = async (): Promise<void> => {
    const { ready: isWhole } = asking
    const renewed = id
    const row = isWhole
      ? await asking.run(() => db.maybeOne(renewLease(id, use(), ttlMs)))
      : await db.maybeOne(renewLease(id, use(), ttlMs, options.running()))
    if (Date.now() - renewedAt > ttlMs - renewMs) judgeFrom = Date.now() + ttlMs
    renewedAt = Date.now()
    if (row !== null) return options.onHeartbeat(row, isWhole)
    // Two renewals at once find one lease lost.
    if (renewed !== id) return
    replacing ??= replace().finally(() => {
      replacing = null
    })
    return replacing
  }

  const watch = async (): Promise<void> => {
    if (Date.now() < judgeFrom || Date.now() - renewedAt > 2 * renewMs) return
    const recovered = searching.ready
      ? await searching.run(() => db.any(recoverJobs(ttlMs * 2)))
      : await db.any(recoverJobs(ttlMs * 2, false))
    if (recovered.length === 0) return
    log.warn({ jobs: recovered.map((row) => row.id) }, 'Took over the jobs of a worker that is gone')
    options.onRecovered(recovered.map((row) => row.id))
  }

  /** Does what the end of the lease has to wait for. */
  const run = (work: () => Promise<void>): Promise<void> => {
    const done = work()
      .catch((error) => log.warn({ err: error }, 'The lease could not be looked after'))
      .finally(() => under.delete(done))
    under.add(done)
    return done
  }

  await insert(id)
  const silent = (ms: number): void =>
    options.onSilence(new Error(`The database has not answered for ${ms / 1000} s: this worker gives up`))
  const loops = [every(renewMs, renew), every(ttlMs / LOOKS, watch)]
  function every(ms: number, work: () => Promise<void>): NodeJS.Timeout {
    let busySince: number | null = null
    return setInterval(() => {
      if (stopped) return
      if (db.usage().oldestMs > HUNG_OTHER_MS) return silent(HUNG_OTHER_MS)
      if (busySince !== null) {
        if (Date.now() - busySince > hungMs) silent(hungMs)
        return
      }
      busySince = Date.now()
      void run(work).finally(() => {
        busySince = null
      })
    }, ms)
  }

  return {
    get id() {
      return id
    },
    renew: () => {
      if (!stopped) void run(renew)
    },
    close: async () => {
      stopped = true
      for (const loop of loops) clearInterval(loop)
      // A renewal that comes after the end would take the lease for lost, and leave another behind.
      await Promise.all(under)
      await db
        .run(deleteLease(id))
        .catch((error) => log.warn({ err: error }, 'The lease could not be given back'))
      await tell()
    },
  }
}
