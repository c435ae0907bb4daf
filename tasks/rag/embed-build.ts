import { setTimeout as delay } from 'node:timers/promises'
import { Failure, restoreFailure } from '../../sql/errors.ts'
import { findJobOutcome } from '../../sql/jobs/jobs.ts'
import type { BuildSwap } from '../../sql/rag/collections.ts'
import { copyVectors, listUnembeddedFiles } from '../../sql/rag/vectors.ts'
import type { TaskContext } from '../context.ts'
import { enqueue } from '../task.ts'
import { EmbedResult, selectEmbedTask } from './embed.task.ts'
import { INDEXING_OPTIONS } from './indexing.ts'

// A batch of this many chunks takes a second or two. Batches may have more, because all chunks of a file are in one
// batch.
const CHUNKS_PER_JOB = 64
const POLL_INTERVAL_MS = 50
// Longer than any batch takes, but finite, so that a queue without workers does not block an index forever. The wait
// reports no progress, so it must be shorter than `stallSeconds`, after which the attempt would be aborted.
export const MAX_WAIT_MS = (INDEXING_OPTIONS.stallSeconds - 300) * 1000

/**
 * Embeds all files that would be in the collection after a swap and have no vectors. Returns the model. Null if the
 * model is unavailable; chunks without vectors then match by keywords only.
 */
export async function embedBuild(
  ctx: TaskContext,
  swap: Pick<BuildSwap, 'collection' | 'build' | 'goneFiles'>,
): Promise<string | null> {
  const { model } = ctx.settings.rag
  if (model === null) return null
  await ctx.runFenced((tx) => tx.run(copyVectors(swap, model)))
  const files = await ctx.db.any(listUnembeddedFiles(swap, model))
  const total = files.reduce((sum, { chunk_count }) => sum + chunk_count, 0)
  let done = 0
  while (files.length > done) {
    ctx.reportProgress(`Embedding ${total} chunks`, done, files.length)
    const batch: number[] = []
    for (let chunks = 0; done < files.length && chunks < CHUNKS_PER_JOB; done++) {
      batch.push(files[done]!.id)
      chunks += files[done]!.chunk_count
    }
    const result = await embedByJob(ctx, { files: batch }, MAX_WAIT_MS)
    // Any other model means that the configured one is unavailable, or that a worker with other settings ran the job.
    if (result.model === model) continue
    ctx.log.warn(
      { reason: result.reason, model: result.model },
      'Embedding failed; the collection is indexed for keyword search only',
    )
    return null
  }
  return model
}

/**
 * Enqueues a job that embeds files or a question, and waits for it. The result's model is null if no worker finishes
 * the job within `waitMs`.
 *
 * @throws the failure of the job.
 */
export async function embedByJob(
  ctx: TaskContext,
  input: { readonly files: number[] } | { readonly text: string },
  waitMs: number,
): Promise<EmbedResult> {
  const { ownerId, requestId } = ctx.job
  const options = { ownerId, requestId, settings: ctx.settings }
  const { jobId } = await ctx.runFenced((tx) =>
    enqueue(tx, selectEmbedTask(ctx.settings.rag), input, options),
  )
  const deadline = performance.now() + waitMs
  while (performance.now() < deadline) {
    await delay(POLL_INTERVAL_MS, undefined, { signal: ctx.signal })
    const job = await ctx.db.maybeOne(findJobOutcome(jobId))
    if (job === null) continue
    if (job.status === 'done') return EmbedResult.parse(job.result)
    throw job.error === null
      ? new Failure('job.cancelled', 'The job was cancelled')
      : restoreFailure(job.error)
  }
  return { model: null, vector: null, reason: 'No worker serves the queue for embeddings' }
}
