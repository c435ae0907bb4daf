import { z } from 'zod'
import { noRows, type Query, sql } from '../db.ts'

/** Leases of workers: proofs that they are alive. */

export interface LeaseRow {
  readonly id: string
  readonly name: string
  readonly queues: readonly string[]
  readonly load: WorkerLoad
}

/** Load that a worker reports at each heartbeat. */
export interface WorkerLoad {
  readonly poolIds: readonly string[]
  readonly threads: number
  /** Number of threads that are running jobs. */
  readonly busy: number
  /** Resident memory of the worker process in bytes. */
  readonly memoryBytes: number
}

export const insertLease = (lease: LeaseRow, ttlMs: number): Query<unknown> =>
  sql.type(noRows)`
    insert into worker_lease (id, name, queues, pool_ids, threads, busy, memory_bytes, expires_at)
    values (${lease.id}::uuid, ${lease.name}, ${sql.array(lease.queues, 'text')}, ${sql.array(lease.load.poolIds, 'text')},
      ${lease.load.threads}, ${lease.load.busy}, ${lease.load.memoryBytes}, now() + make_interval(secs => ${ttlMs / 1000}::float8))`

const RunningJobs = z.object({
  running: z.array(z.object({ id: z.string(), attempt: z.number(), cancel: z.boolean() })),
  /** True if there are jobs to rescue, whose worker is gone. */
  must_rescue: z.boolean(),
})
export type RunningJobs = z.output<typeof RunningJobs>

// Workers renew a lease with three quarters of its time left. If less than a quarter is left, two renewals have failed.
const LATE_RENEWAL_DIVISOR = 4

/**
 * Renews a lease; no row if it is lost. Returns those of the jobs `ids` that run under it, and whether another lease has
 * expired. Takes a moment only, also while a transaction holds an old snapshot.
 */
export const renewLease = (
  id: string,
  use: WorkerLoad,
  ttlMs: number,
  ids: readonly string[] = [],
): Query<RunningJobs> =>
  sql.prepared('lease_renew', RunningJobs)`
    update worker_lease set expires_at = now() + make_interval(secs => ${ttlMs / 1000}::float8),
      steady_since = case when expires_at < now() + make_interval(secs => ${ttlMs / LATE_RENEWAL_DIVISOR / 1000}::float8) then now()
        else steady_since end,
      pool_ids = ${sql.array(use.poolIds, 'text')}, threads = ${use.threads}, busy = ${use.busy},
      memory_bytes = ${use.memoryBytes}
    where id = ${id}::uuid
    returning job_running(id, ${sql.array(ids, 'uuid')}) as running,
      exists (select from worker_lease other where other.id <> worker_lease.id and other.expires_at < now()) as must_rescue`

/** Returns all jobs that run under a lease, and whether any job runs under a lease that is gone. */
export const listRunningJobs = (lease: string): Query<RunningJobs> =>
  sql.prepared('lease_jobs', RunningJobs)`
    select job_running(${lease}::uuid) as running, exists (select from job_orphans(1)) as must_rescue`

/** Deletes a lease at an orderly shutdown. */
export const deleteLease = (id: string): Query<unknown> =>
  sql.type(noRows)`delete from worker_lease where id = ${id}::uuid`

/** Unlocks deliveries that closed queue pools still hold, and wakes all workers. */
export const unlockPools = (poolIds: readonly string[]): Query<unknown> =>
  sql.type(noRows)`select job_unlock_deliveries(${sql.array(poolIds, 'text')})`
