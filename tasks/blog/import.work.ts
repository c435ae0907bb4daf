import { storePostWords } from '../../sql/blog/search.ts'
import {
  deleteUpload,
  finishUpload,
  readImporterName,
  readUpload,
  readUploadChunk,
} from '../../sql/blog/transfer.ts'
import type { Queries } from '../../sql/db.ts'
import { Failure, fail } from '../../sql/errors.ts'
import { fenceJob } from '../../sql/jobs/jobs.ts'
import type { PostReader, TaskContext } from '../context.ts'
import { enqueueAnnouncement } from './announcement.ts'
import { assignSlugs } from './assign-slugs.ts'
import { ImportReport } from './import-report.ts'
import type { ItemResult } from './items.ts'
import { toPublicName } from './public.ts'
import { ImportResult, type ON_CONFLICT } from './shapes.ts'
import { NO_POSTS_REASON } from './site-files.ts'
import { PostWriter } from './write.ts'

interface ImportPayload {
  readonly uploadId: number
  readonly onConflict: (typeof ON_CONFLICT)[number]
}

const PROGRESS_INTERVAL = 50
// Posts whose words one statement stores.
const WORDS_BATCH = 100
// Maximum total length of the posts of a file, because the import holds them in memory.
const MAX_TOTAL_CHARACTERS = 128_000_000

/** Runs `blog.import`. */
export async function run(ctx: TaskContext, { uploadId, onConflict }: ImportPayload): Promise<ImportResult> {
  ctx.reportProgress('Reading the file')
  const file = await ctx.db.maybeOne(readUpload(uploadId))
  if (file === null) throw fail('import.bytes_missing')
  if (file.result !== null) return ImportResult.parse(file.result)
  try {
    const bytes = await loadUpload(ctx, uploadId)
    const items = await readItems(
      ctx,
      await ctx.providers.readPosts(file.file_name, file.format, bytes, ctx.signal),
    )
    const { result, written } = await ctx.db.transaction(async (tx) => {
      const { name } = await tx.one(readImporterName(ctx.job.ownerId))
      const report = new ImportReport()
      if (file.format === 'zip' && !items.some(({ read }) => 'post' in read || !read.isSkipped))
        report.note(file.file_name, NO_POSTS_REASON)
      const author = { id: ctx.job.ownerId, name: toPublicName(name) }
      const { maxRevisions } = ctx.settings.blog
      const writer = new PostWriter(tx, author, onConflict, report, maxRevisions)
      const result = await writeItems(ctx, items, writer, report)
      await tx.run(finishUpload(uploadId, result))
      await enqueueAnnouncement(tx, ctx.settings, ctx.job.requestId)
      await assertCurrentAttempt(ctx, tx)
      return { result, written: writer.written }
    })
    await storeWords(ctx, written)
    return result
  } catch (error) {
    // No further attempt needs the upload after a permanent failure.
    if (error instanceof Failure && !error.retryable && error.code !== 'job.superseded')
      await ctx.db.run(deleteUpload(uploadId))
    throw error
  }
}

/**
 * Stores the words of posts, in a transaction for each batch: one with several batches could deadlock with an editor's.
 * If an attempt ends before, the next pass over all words stores them.
 */
async function storeWords({ db, signal }: TaskContext, ids: readonly number[]): Promise<void> {
  for (let from = 0; from < ids.length; from += WORDS_BATCH) {
    signal.throwIfAborted()
    await db.run(storePostWords(ids.slice(from, from + WORDS_BATCH)))
  }
}

type Items = readonly Item[]
type Item = { readonly file: string; readonly read: ItemResult }

/** Reads all posts before the first write, so that the transaction does not wait for the reader. */
async function readItems({ reportProgress }: TaskContext, posts: PostReader): Promise<Items> {
  const items: Item[] = []
  let characters = 0
  try {
    for await (const item of posts.read()) {
      items.push(item)
      if ('post' in item.read) characters += item.read.post.content.length
      if (characters > MAX_TOTAL_CHARACTERS)
        throw fail('import.refused', { reason: `it contains more than ${MAX_TOTAL_CHARACTERS} characters` })
      if (items.length % PROGRESS_INTERVAL === 0)
        reportProgress(`Reading post ${items.length} of ${posts.count}`)
    }
  } finally {
    posts.close()
  }
  return items
}

async function writeItems(
  ctx: TaskContext,
  items: Items,
  writer: PostWriter,
  report: ImportReport,
): Promise<ImportResult> {
  const count = items.length
  const slugs = assignSlugs(
    items.flatMap(({ read }) =>
      'post' in read ? [{ slug: read.post.slug, isGiven: read.hasGivenSlug }] : [],
    ),
  ).values()
  for (const [i, { file, read }] of items.entries()) {
    ctx.signal.throwIfAborted()
    if ('post' in read) await writer.add({ file, ...read, post: { ...read.post, slug: slugs.next().value! } })
    else report.addNoPost(file, read)
    if ((i + 1) % PROGRESS_INTERVAL === 0) ctx.reportProgress(`Post ${i + 1} of ${count}`, i + 1, count)
  }
  await writer.flush()
  ctx.reportProgress(`Post ${count} of ${count}`, count, count)
  return report.build()
}

/**
 * Checks that no other attempt has taken over the job. Call it last in the transaction: it locks the job's row, which
 * blocks takeovers until the commit.
 *
 * @throws fail('job.superseded') if another attempt has taken over.
 */
async function assertCurrentAttempt(ctx: TaskContext, tx: Queries): Promise<void> {
  if ((await tx.maybeOne(fenceJob(ctx.job.id, ctx.job.attempt))) === null) throw fail('job.superseded')
}

async function loadUpload(ctx: TaskContext, uploadId: number): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for (;;) {
    const chunk = await ctx.db.maybeOne(readUploadChunk(uploadId, chunks.length))
    if (chunk === null) return Buffer.concat(chunks)
    chunks.push(chunk.bytes)
  }
}
