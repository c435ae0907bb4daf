import { z } from 'zod'
import type { ClaimedJob } from '../../../sql/jobs/claims.ts'
import { SUSPECT_FROM_DEATHS } from '../../../sql/jobs/jobs.ts'
import type { WorkerClaimResult } from '../../../sql/worker-queues/claims.ts'
import { DEFAULT_TIMEOUT_SECONDS } from '../../../tasks/task.ts'
import { parseJobName } from '../../../tasks/worker-queues/names.ts'
import { Timestamp } from '../../pipeline/request/schemas.ts'

/** The answer to a claim. */

export const ClaimedJobs = z
  .strictObject({
    lease_id: z.uuid(),
    lease_seconds: z.int(),
    drain: z.boolean().describe('True if the worker should claim no more'),
    jobs: z.array(
      z.strictObject({
        job_id: z.uuid(),
        task: z.string(),
        args: z.unknown(),
        attempt: z.int(),
        tries: z.int(),
        max_tries: z.int(),
        deadline: Timestamp.describe('End of the time limit of the attempt'),
        dependencies: z.array(z.unknown()).describe('Outcomes of the jobs in `after`, in their order'),
        traceparent: z.string().nullable(),
        alone: z
          .boolean()
          .describe('True if the job must run alone, because processes died while they ran it'),
      }),
    ),
  })
  .meta({ id: 'WorkerClaimed' })

/** Builds the answer without parsing the arguments. */
export function formatClaim(
  lease: string,
  lease_seconds: number,
  { timeouts, dependencies, is_drained, now }: WorkerClaimResult,
  claimed: readonly ClaimedJob[],
): string {
  const jobs = claimed.map((job) => {
    const { task } = parseJobName(job.name)
    const timeoutMs = (timeouts?.[task] ?? DEFAULT_TIMEOUT_SECONDS) * 1000
    const fields = JSON.stringify({
      job_id: job.id,
      task,
      attempt: job.attempt,
      tries: job.tries,
      max_tries: job.max_tries,
      deadline: new Date(Date.parse(now) + timeoutMs).toISOString(),
      dependencies: dependencies?.[job.id] ?? [],
      traceparent: job.trace_parent,
      alone: job.interruptions >= SUSPECT_FROM_DEATHS,
    })
    return `${fields.slice(0, -1)},"args":${job.payload}}`
  })
  const head = JSON.stringify({ lease_id: lease, lease_seconds, drain: is_drained === true })
  return `${head.slice(0, -1)},"jobs":[${jobs.join(',')}]}`
}
