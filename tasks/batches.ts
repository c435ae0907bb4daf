import type { Queries } from '../sql/db.ts'
import { fail } from '../sql/errors.ts'
import { listUnsuccessfulJobs, lockBatch } from '../sql/jobs/batches.ts'
import { closeBatch, enqueueJobs, type JobSpec } from '../sql/jobs/jobs.ts'
import { linkRetries } from '../sql/jobs/retry.ts'
import { buildRetry, type RetryOptions } from './retry.ts'
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
 * @throws fail('job.not_runnable') if this version lacks the task of a job, or rejects its payload.
 */
export async function retryBatch(tx: Queries, batchId: string, options: RetryOptions): Promise<string> {
  const { name, owner_id: ownerId } = await tx.one(lockBatch(batchId))
  const jobs = await tx.any(listUnsuccessfulJobs(batchId))
  if (jobs.length === 0) throw fail('batch.succeeded')
  const batch = buildBatch(name, { ...options, ownerId })
  const retries = new Map<string, JobSpec>()
  for (const job of jobs) {
    const retry = buildRetry(job, options)
    if (retry instanceof Error) throw retry
    const after = job.after?.map((id) => retries.get(id)?.id ?? id)
    const dependencies = after && { after, after_outcome: job.after_outcome ?? 'done' }
    retries.set(job.id, { ...retry, batch_id: batch.id, ...dependencies })
  }
  await tx.any(enqueueJobs([batch, ...retries.values()], options.settings.quotas.waiting_jobs))
  await tx.run(
    linkRetries(
      [...retries.values()].map(({ id }) => id),
      [...retries.keys()],
    ),
  )
  await tx.any(closeBatch(batch.id))
  return batch.id
}
