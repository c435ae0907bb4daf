import type { Queries } from '../sql/db.ts'
import { Failure, fail } from '../sql/errors.ts'
import {
  listLatestRetries,
  lockBatch,
  lockUnsuccessfulJobs,
  type UnsuccessfulJob,
} from '../sql/jobs/batches.ts'
import { closeBatch, enqueueJobs, type JobSpec } from '../sql/jobs/jobs.ts'
import { linkRetries, type RetriedJob } from '../sql/jobs/retry.ts'
import { buildRetry, type DeclaredByJob, findDeclared, type RetryOptions } from './retry.ts'
import { endBatch } from './system/batch.task.ts'
import { buildJobSpecs, type EnqueueOptions } from './task.ts'

/** Returns the job of a new batch, which is open. */
export function buildBatch(name: string | null, options: Omit<EnqueueOptions, 'terms'>): JobSpec {
  return buildJobSpecs(endBatch, [{ name, is_open: true }], { ...options, terms: { isBatch: true } })[0]!
}

/**
 * Retries the jobs of a batch that did not succeed, as a new closed batch with the same dependencies among them. Returns
 * its id, which belongs to the owner of the first one.
 *
 * @throws fail('batch.succeeded') if there are none.
 * @throws fail('job.dependency_failed') if a job depends on another one that did not succeed and is not retried.
 * @throws fail('job.not_runnable') if this version lacks the task of a job, or rejects its payload.
 */
export async function retryBatch(tx: Queries, batchId: string, options: RetryOptions): Promise<string> {
  const { name, owner_id: ownerId } = await tx.one(lockBatch(batchId))
  const jobs = await tx.any(lockUnsuccessfulJobs(batchId))
  if (jobs.length === 0) throw fail('batch.succeeded')
  const batch = buildBatch(name, { ...options, ownerId })
  const declared = await findDeclared(tx, jobs)
  const retries = new Map(jobs.map((job) => [job.id, requireRetry(job, declared, options)]))
  const needed = await findReplacements(tx, jobs, retries)
  const specs = jobs.map((job) => {
    const after = [...new Set((job.after ?? []).flatMap((id) => needed.get(id) ?? []))]
    const dependencies = after.length > 0 && { after, after_outcome: job.after_outcome ?? 'done' }
    return { ...retries.get(job.id)!, batch_id: batch.id, ...dependencies }
  })
  await tx.any(enqueueJobs([batch, ...specs], options.settings.quotas.waiting_jobs))
  await tx.run(
    linkRetries(
      specs.map(({ id }) => id),
      [...retries.keys()],
    ),
  )
  await tx.any(closeBatch(batch.id))
  return batch.id
}

function requireRetry(job: RetriedJob, declared: DeclaredByJob, options: RetryOptions): JobSpec {
  const retry = buildRetry(job, declared, options)
  if (retry instanceof Failure) throw retry
  return retry
}

/** Returns the job to wait for instead of each dependency: its retry, or itself. Omits jobs that were deleted. */
async function findReplacements(
  tx: Queries,
  jobs: readonly UnsuccessfulJob[],
  retries: ReadonlyMap<string, JobSpec>,
): Promise<ReadonlyMap<string, string>> {
  const others = [...new Set(jobs.flatMap(({ after }) => after ?? []))].filter((id) => !retries.has(id))
  const latest = new Map((await tx.any(listLatestRetries(others))).map((row) => [row.id, row]))
  for (const { after, after_outcome } of jobs)
    for (const id of after ?? [])
      if (after_outcome === 'done' && ['failed', 'cancelled'].includes(latest.get(id)?.status ?? ''))
        throw fail('job.dependency_failed')
  return new Map([
    ...[...retries].map(([id, spec]) => [id, spec.id] as const),
    ...[...latest].map(([id, { latest_id }]) => [id, latest_id] as const),
  ])
}
