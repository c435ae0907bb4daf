import { z } from 'zod'
import { type Query, sql } from '../db.ts'
import { ALONE_FROM_DEATHS, MAX_CRASHES, SUSPECT_FROM_DEATHS } from '../jobs/jobs.ts'
import type { QueueViewer } from './queues.ts'

/** Claims of HTTP workers, their leases and their reports. */

/** Most bytes of arguments, and of dependencies' results, in a claim. */
const MAX_CLAIM_BYTES = 8 * 1024 * 1024
/** Most bytes of the results of one job's dependencies in a claim, or in a request to an endpoint. */
export const MAX_DEPENDENCY_BYTES = 64 * 1024

const MAX_INTERRUPTIONS = ALONE_FROM_DEATHS + MAX_CRASHES

const ClaimedJobs = z.object({
  /** As in `ClaimResult` of `jobs/claims.ts`. */
  claims: z.string().nullable(),
  /** Reason for which no job may start now: a limit, a suspect that the lease runs, or the queue as a whole. */
  held: z.enum(['limit', 'lease', 'queue']).nullable(),
  must_repeat: z.boolean(),
})
export type ClaimedJobs = z.output<typeof ClaimedJobs>

/** Claims jobs of a queue for a lease, see `worker_queue_claim`. */
export const claimQueueJobs = (queue: string, lease: string, max: number): Query<ClaimedJobs> =>
  sql.prepared('worker_queue_claim', ClaimedJobs)`
    select claims, held, must_repeat from worker_queue_claim(${queue}, ${lease}::uuid, null::text[], ${max}::int, ${MAX_CLAIM_BYTES},
      ${SUSPECT_FROM_DEATHS}, ${MAX_INTERRUPTIONS})`

/** A claim of an HTTP worker. */
export interface WorkerClaim {
  readonly queue: string
  readonly viewer: QueueViewer
  readonly lease: string
  /** The worker's id of the claim, so that it can be repeated; null without one. */
  readonly claim: string | null
  readonly name: string
  readonly info: object
  readonly leaseSeconds: number
  /** Longest time for which the claim waits. */
  readonly waitSeconds: number
  /** Names of tasks; null for all. */
  readonly tasks: readonly string[] | null
  readonly max: number
  /** True if the lease may be new, false if the claim has held it before. */
  readonly mayCreate: boolean
}

const WorkerClaimResult = z.object({
  json: z.object({
    /**
     * `pushed`: the queue has an endpoint. `taken`: the lease belongs to another queue. `full`: too many leases. `gone`: the
     * lease was given back while the claim waited.
     */
    outcome: z.enum(['ok', 'missing', 'forbidden', 'pushed', 'taken', 'full', 'gone']),
    claims: z.string().nullish(),
    held: z.enum(['limit', 'lease', 'queue']).nullish(),
    must_repeat: z.boolean().nullish(),
    is_drained: z.boolean().nullish(),
    /** Time limits by task, in seconds. */
    timeouts: z.record(z.string(), z.number().nullable()).nullish(),
    /** Outcomes of dependencies by job. */
    dependencies: z.record(z.string(), z.unknown()).nullish(),
    now: z.string(),
  }),
})
export type WorkerClaimResult = z.output<typeof WorkerClaimResult>['json']

/** Holds the lease of a worker and claims jobs for it, or repeats the answer of an earlier claim; see `worker_claim_take`. */
export const claimForWorker = (c: WorkerClaim): Query<{ json: WorkerClaimResult }> =>
  sql.prepared('worker_claim', WorkerClaimResult)`
    select worker_claim_take(${c.queue}, ${c.viewer[0]}::int, ${c.viewer[1]}::boolean, ${c.viewer[2]}::int, ${c.lease}::uuid, ${c.claim}::uuid,
      ${c.name}, ${JSON.stringify(c.info)}::jsonb, ${c.leaseSeconds}::int, ${c.waitSeconds}::int,
      nullif(${sql.array(
        (c.tasks ?? []).map((task) => `${c.queue}/${task}`),
        'text',
      )}, '{}'), ${c.max}::int, ${MAX_CLAIM_BYTES}, ${MAX_DEPENDENCY_BYTES}, ${SUSPECT_FROM_DEATHS}, ${MAX_INTERRUPTIONS}, ${c.mayCreate}) as json`

const Attempt = z.object({
  id: z.string(),
  name: z.string(),
  attempt: z.number(),
  /** The attempt that was asked for. */
  given: z.number(),
  tries: z.number(),
  max_tries: z.number(),
  /** True if the attempt runs under the lease. */
  is_current: z.boolean(),
  is_cancelled: z.boolean(),
  /** Outcome of the given attempt; null if it has not ended. */
  ended: z.string().nullable(),
  /** Times since the claim and since the last report, and from the due time to the claim. */
  claimed_seconds: z.number().nullable(),
  silent_seconds: z.number().nullable(),
  waited_seconds: z.number().nullable(),
})
export type Attempt = z.output<typeof Attempt>

const HeldLease = z.object({
  json: z.object({
    queue: z.string(),
    ttl_seconds: z.number(),
    is_drained: z.boolean(),
    jobs: z.array(Attempt),
    /** Declarations of the jobs' tasks, by the name of the job. */
    tasks: z.record(
      z.string(),
      z.object({
        result: z.unknown(),
        timeout_seconds: z.number().nullable(),
        stall_seconds: z.number().nullable(),
      }),
    ),
  }),
})
export type HeldLease = z.output<typeof HeldLease>['json']

/**
 * Renews a lease, and returns its jobs: all that run under it, or those of `ids` at the given attempts. No row if the lease has
 * expired or the caller may not use it.
 */
export const renewWorkerLease = (
  lease: string,
  viewer: QueueViewer,
  wanted: { readonly ids: readonly string[]; readonly attempts: readonly number[] } | null,
): Query<{ json: HeldLease }> =>
  sql.prepared('worker_lease_renew', HeldLease)`
    select json from worker_lease_renew(${lease}::uuid, ${viewer[0]}::int, ${viewer[1]}::boolean, ${viewer[2]}::int,
      nullif(${sql.array(wanted?.ids ?? [], 'uuid')}, '{}'), ${sql.array(wanted?.attempts ?? [], 'int4')}) as json
    where json is not null`

/** Releases the jobs of a lease and deletes it. No row if the caller may not use it. */
export const endWorkerLease = (lease: string, viewer: QueueViewer): Query<{ json: HeldLease }> =>
  sql.type(HeldLease)`
    select json from worker_lease_end(${lease}::uuid, ${viewer[0]}::int, ${viewer[1]}::boolean, ${viewer[2]}::int,
      ${SUSPECT_FROM_DEATHS}, ${MAX_INTERRUPTIONS}) as json
    where json is not null`
