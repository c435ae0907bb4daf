import { z } from 'zod'
import type { FinishEntry } from '../../../sql/jobs/jobs.ts'
import {
  type Attempt,
  endWorkerLease,
  type HeldLease,
  renewWorkerLease,
} from '../../../sql/worker-queues/claims.ts'
import { DEFAULT_TIMEOUT_SECONDS } from '../../../tasks/task.ts'
import { buildFailureEntry } from '../../../tasks/worker-queues/failures.ts'
import type { Edge } from '../../pipeline/context.ts'
import { route } from '../../pipeline/route.ts'
import { viewerOf } from './access.ts'
import { countEnded, endAttempts } from './ended.ts'
import { leaseOptions, requireHeld } from './held-lease.ts'
import { reportRoute } from './reports.ts'

/** Routes of the leases of HTTP workers. */

const Renewal = z
  .strictObject({
    jobs: z
      .array(z.strictObject({ job_id: z.uuid().toLowerCase(), attempt: z.int().min(1).max(2_147_483_647) }))
      .max(10_000)
      .optional()
      .describe('The jobs that run in the worker. Others of the lease are given back'),
  })
  .meta({ id: 'LeaseRenewal' })

const RenewedLease = z
  .strictObject({
    lease_seconds: z.int(),
    drain: z.boolean().describe('True if the worker should claim no more'),
    cancelled: z.array(z.uuid()).describe('Jobs to stop, because somebody has cancelled them'),
    superseded: z.array(z.uuid()).describe('Given jobs that no longer run under the lease'),
  })
  .meta({ id: 'RenewedLease' })

export const leaseRoutes = [
  route({
    ...leaseOptions,
    method: 'post',
    path: '/:lease_id',
    summary: 'Renew the lease of an HTTP worker',
    description: `Also ends attempts that have exceeded a time limit of their task, and tells which jobs to stop. 404 means that the \
lease has expired, and that its jobs run elsewhere.`,
    body: Renewal,
    bodyValues: 50_000,
    response: RenewedLease,
    whyRepeatable: 'It only moves the end of the lease',
    handle: async ({ params, body, caller, edge }) => {
      const held = await requireHeld(edge, params.lease_id, (id) =>
        renewWorkerLease(id, viewerOf(caller), null),
      )
      const given = body.jobs && new Map(body.jobs.map(({ job_id, attempt }) => [job_id, attempt]))
      const overdue = held.jobs.flatMap((job) => findTimeout(job, held) ?? [])
      const lost = given === undefined ? [] : held.jobs.filter((job) => isLost(job, given, held))
      const released = lost.map(({ id, attempt }): FinishEntry => ({ id, attempt, outcome: 'release' }))
      const entries = new Map([...released, ...overdue].map((entry) => [entry.id, entry]))
      await endAll(edge, held, [...entries.values()])
      const running = held.jobs.filter(({ id }) => !entries.has(id))
      const current = new Map(running.map(({ id, attempt }) => [id, attempt]))
      return {
        lease_seconds: held.ttl_seconds,
        drain: held.is_drained,
        cancelled: running.filter(({ is_cancelled }) => is_cancelled).map(({ id }) => id),
        superseded: [...(given ?? [])]
          .filter(([id, attempt]) => current.get(id) !== attempt)
          .map(([id]) => id),
      }
    },
  }),

  route({
    ...leaseOptions,
    method: 'delete',
    path: '/:lease_id',
    summary: 'Give back a lease and its jobs',
    description: 'The jobs run elsewhere at once, and no try counts. A worker calls this when it stops.',
    handle: async ({ params, caller, edge }) => {
      const ended = await requireHeld(edge, params.lease_id, (id) => endWorkerLease(id, viewerOf(caller)))
      const { jobs } = ended
      for (const job of jobs) edge.publisher.notify(job.id)
      const entries = jobs.map(({ id }) => ({ id, outcome: 'release' as const }))
      countEnded(edge, ended, entries, new Set(jobs.map((job) => job.id)))
      return undefined
    },
  }),

  reportRoute,
]

/** True if the answer to the job's claim was lost: the worker does not know the job, although it has had time to. */
function isLost(
  { id, attempt, claimed_seconds }: Attempt,
  given: ReadonlyMap<string, number>,
  { ttl_seconds }: HeldLease,
): boolean {
  return given.get(id) !== attempt && (claimed_seconds ?? 0) > ttl_seconds / 2
}

/** Returns the end of an attempt that has exceeded a time limit; null if it has not. */
function findTimeout(job: Attempt, { tasks }: HeldLease): FinishEntry | null {
  const { timeout_seconds = null, stall_seconds = null } = tasks[job.name] ?? {}
  const limit = timeout_seconds ?? DEFAULT_TIMEOUT_SECONDS
  const isOver = (job.claimed_seconds ?? 0) > limit
  const isStalled = stall_seconds !== null && (job.silent_seconds ?? 0) > stall_seconds
  if (!isOver && !isStalled) return null
  const detail = isOver
    ? `The job exceeded its time limit of ${limit} s`
    : `The job reported nothing for ${stall_seconds} s`
  return buildFailureEntry(job, { code: 'job.timeout', detail })
}

async function endAll(edge: Edge, held: HeldLease, entries: readonly FinishEntry[]): Promise<void> {
  const ended = await endAttempts(edge, entries)
  countEnded(edge, held, entries, new Set(ended))
  edge.claims.handleEnds(held.queue, ended.length)
}
