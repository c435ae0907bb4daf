import { deleteUpload, endUpload, importer, upload, uploadChunk } from '../../sql/blog/transfer.ts'
import type { Queries } from '../../sql/db.ts'
import { Failure, fail } from '../../sql/errors.ts'
import { fenceJob } from '../../sql/jobs.ts'
import type { PostReader, TaskContext } from '../context.ts'
import type { ImportPayload } from './import.ts'
import type { ReadItem } from './items.ts'
import { publicName } from './public.ts'
import { ImportResult } from './shapes.ts'
import { Writer } from './write.ts'

// Errors that are reported one by one; any more are only counted.
const MAX_ERRORS = 1000
const PROGRESS_EVERY = 50
// Of all posts of a file together, which are held in memory at once.
const MAX_CHARACTERS = 128_000_000

/** The work of `blog.import`. */
export async function run(ctx: TaskContext, { uploadId, onConflict }: ImportPayload): Promise<ImportResult> {
  ctx.progress('Reading the file')
  const file = await ctx.db.maybeOne(upload(uploadId))
  if (file === null) throw fail('import.bytes_missing')
  if (file.result !== null) return ImportResult.parse(file.result)
  try {
    const bytes = await bytesOf(ctx, uploadId)
    const items = await readAll(
      ctx,
      await ctx.providers.readPosts(file.file_name, file.format, bytes, ctx.signal),
    )
    return await ctx.db.transaction(async (tx) => {
      const { name } = await tx.one(importer(ctx.job.ownerId))
      const writer = new Writer(tx, { id: ctx.job.ownerId, name: publicName(name) }, onConflict)
      const result = await writeAll(ctx, items, writer)
      await tx.run(endUpload(uploadId, result))
      await assertCurrentAttempt(ctx, tx)
      return result
    })
  } catch (error) {
    // It would fail again, and there is no next attempt.
    if (error instanceof Failure && !error.retryable && error.code !== 'job.superseded')
      await ctx.db.run(deleteUpload(uploadId))
    throw error
  }
}

type Items = readonly Item[]
type Item = { readonly file: string; readonly read: ReadItem }

/** Reads everything before anything is written: a transaction must not wait for a reader. */
async function readAll({ progress }: TaskContext, posts: PostReader): Promise<Items> {
  const items: Item[] = []
  let characters = 0
  try {
    for await (const item of posts.read()) {
      items.push(item)
      if ('post' in item.read) characters += item.read.post.content.length
      if (characters > MAX_CHARACTERS)
        throw fail('import.refused', { reason: `it holds more than ${MAX_CHARACTERS} characters` })
      if (items.length % PROGRESS_EVERY === 0) progress(`Reading post ${items.length} of ${posts.count}`)
    }
  } finally {
    posts.close()
  }
  return items
}

async function writeAll(ctx: TaskContext, items: Items, writer: Writer): Promise<ImportResult> {
  const errors: ImportResult['errors'] = []
  const count = items.length
  let failed = 0
  for (const [i, { file, read }] of items.entries()) {
    ctx.signal.throwIfAborted()
    if ('post' in read) await writer.add(read)
    else if (++failed <= MAX_ERRORS) errors.push({ slug: read.slug, file, message: read.message })
    if ((i + 1) % PROGRESS_EVERY === 0) ctx.progress(`Post ${i + 1} of ${count}`, i + 1, count)
  }
  await writer.flush()
  ctx.progress(`Post ${count} of ${count}`, count, count)
  return { ...writer.counts, failed, errors }
}

/** Last in the transaction, since it locks the job's row against a take-over. */
async function assertCurrentAttempt(ctx: TaskContext, tx: Queries): Promise<void> {
  if ((await tx.maybeOne(fenceJob(ctx.job.id, ctx.job.attempt))) === null) throw fail('job.superseded')
}

async function bytesOf(ctx: TaskContext, uploadId: number): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for (;;) {
    const chunk = await ctx.db.maybeOne(uploadChunk(uploadId, chunks.length))
    if (chunk === null) return Buffer.concat(chunks)
    chunks.push(chunk.bytes)
  }
}
