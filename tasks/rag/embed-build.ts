import { setTimeout as delay } from 'node:timers/promises'
import { Failure, storedFailure } from '../../sql/errors.ts'
import { endOfJob } from '../../sql/jobs.ts'
import { type Swap, unembeddedFiles } from '../../sql/rag.ts'
import type { TaskContext } from '../context.ts'
import { enqueue } from '../task.ts'
import { EmbedResult, embedTaskOf } from './embed.ts'

// A batch of so many chunks takes a second or two; a file is never parted.
const CHUNKS_AT_ONCE = 64
const POLL_MS = 50
// Longer than any batch; a queue that nobody serves must not hold an index up for ever.
const MOST_WAIT_MS = 30 * 60_000

/**
 * Gives every file that a swap would leave in the collection its vectors. Answers the model, or null where it can't be had:
 * then what has none is found by its words.
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
    const result = await embedByJob(ctx, { files: batch }, MOST_WAIT_MS)
    if (result.model !== null) continue
    ctx.log.warn({ reason: result.reason }, 'The collection is indexed by its words alone')
    return null
  }
  return model
}

/** Has a job embed files or a question, on the thread that has the model, and waits for it. */
export async function embedByJob(
  ctx: TaskContext,
  what: { readonly files: number[] } | { readonly text: string },
  waitMs: number,
): Promise<EmbedResult> {
  const { ownerId, requestId } = ctx.job
  const options = { ownerId, requestId, maxTries: ctx.settings.workerMaxTries }
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
  return { model: null, vector: null, reason: 'No worker serves the queue of the embeddings' }
}
