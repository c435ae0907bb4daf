import { setTimeout as delay } from 'node:timers/promises'
import { Failure, storedFailure } from '../../sql/errors.ts'
import { endOfJob } from '../../sql/jobs.ts'
import { type Swap, unembeddedFiles } from '../../sql/rag.ts'
import type { TaskContext } from '../context.ts'
import { enqueue } from '../task.ts'
import { EmbedResult, embedTaskOf } from './embed.ts'
import { INDEXING } from './indexing.ts'

// A batch of this many chunks takes a second or two; a file is never split.
const CHUNKS_AT_ONCE = 64
const POLL_MS = 50
// Longer than any batch; a queue that nobody serves must not hold an index up for ever. Nothing is reported meanwhile, so it is
// shorter than a run may be silent, which would end the attempt.
export const MAX_WAIT_MS = (INDEXING.stallSeconds - 300) * 1000

/**
 * Makes the missing vectors of all files that a swap would leave in the collection. Returns the model, or null when it
 * is unavailable: then chunks without vectors are found by their words.
 */
export async function embedBuild(
  ctx: TaskContext,
  swap: Pick<Swap, 'collection' | 'build' | 'gone'>,
): Promise<string | null> {
  const { model } = ctx.settings.rag
  if (model === null) return null
  const files = await ctx.db.any(unembeddedFiles(swap, model))
  const total = files.reduce((sum, { chunk_count }) => sum + chunk_count, 0)
  let done = 0
  while (files.length > done) {
    ctx.progress(`Embedding ${total} chunks`, done, files.length)
    const batch: number[] = []
    for (let chunks = 0; done < files.length && chunks < CHUNKS_AT_ONCE; done++) {
      batch.push(files[done]!.id)
      chunks += files[done]!.chunk_count
    }
    const result = await embedByJob(ctx, { files: batch }, MAX_WAIT_MS)
    // A worker that still has other settings has made other vectors.
    if (result.model === model) continue
    ctx.log.warn({ reason: result.reason, model: result.model }, 'The collection is indexed by words only')
    return null
  }
  return model
}

/** Adds a job that embeds files or a question on the queue of the embeddings, and waits for it. */
export async function embedByJob(
  ctx: TaskContext,
  what: { readonly files: number[] } | { readonly text: string },
  waitMs: number,
): Promise<EmbedResult> {
  const { ownerId, requestId } = ctx.job
  const options = { ownerId, requestId, settings: ctx.settings }
  const { jobId } = await ctx.fenced((tx) => enqueue(tx, embedTaskOf(ctx.settings.rag), what, options))
  const end = performance.now() + waitMs
  while (performance.now() < end) {
    await delay(POLL_MS, undefined, { signal: ctx.signal })
    const job = await ctx.db.maybeOne(endOfJob(jobId))
    if (job === null) continue
    if (job.status === 'done') return EmbedResult.parse(job.result)
    throw job.error === null
      ? new Failure('job.cancelled', 'The job was cancelled')
      : storedFailure(job.error)
  }
  return { model: null, vector: null, reason: 'No worker serves the queue for embeddings' }
}
