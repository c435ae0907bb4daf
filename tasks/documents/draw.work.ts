import { findExtractionSource, findUnrenderedPage, storePageImage } from '../../sql/documents/pages.ts'
import { fail } from '../../sql/errors.ts'
import type { PlacedWord, TaskContext } from '../context.ts'
import { unsealPassword } from './extraction.ts'
import { findWords } from './words.ts'

interface Request {
  readonly documentId: number
  readonly page: number
  readonly find?: readonly string[] | undefined
}

interface Source {
  readonly bytes: Uint8Array
  readonly options: Parameters<TaskContext['providers']['renderPage']>[2]
}

/** Runs `documents.draw`. */
export async function run(
  ctx: TaskContext,
  { documentId, page, find }: Request,
): Promise<{ drawn: boolean; words?: PlacedWord[] }> {
  if (find !== undefined) {
    const { bytes, options } = await readSource(ctx, documentId)
    const words = await ctx.providers.placeWords(bytes, page, options)
    return { drawn: false, words: findWords(words, find) }
  }
  const undrawn = await ctx.db.maybeOne(findUnrenderedPage(documentId, page))
  if (undrawn === null) return { drawn: false }
  const { bytes, options } = await readSource(ctx, documentId)
  const image = await ctx.providers.renderPage(bytes, page, options)
  await ctx.runFenced((tx) => tx.run(storePageImage(documentId, page, undrawn.job_id, image)))
  return { drawn: image !== null }
}

async function readSource(ctx: TaskContext, documentId: number): Promise<Source> {
  const source = await ctx.db.maybeOne(findExtractionSource(documentId))
  if (source === null) throw fail('document.missing')
  if (source.blob_id === null) throw fail('document.bytes_missing')
  const bytes = await ctx.blobs.readWhole(source.blob_id, source.byte_size)
  const password = unsealPassword(ctx.keys, documentId, source.sealed_password)
  return { bytes, options: { mediaType: source.media_type, password, signal: ctx.signal } }
}
