import { findExtractionSource, findUnrenderedPage, storePageImage } from '../../sql/documents/pages.ts'
import { fail } from '../../sql/errors.ts'
import type { TaskContext } from '../context.ts'
import { unsealPassword } from './extraction.ts'

/** Runs `documents.draw`. */
export async function run(
  ctx: TaskContext,
  { documentId, page }: { readonly documentId: number; readonly page: number },
): Promise<{ drawn: boolean }> {
  const undrawn = await ctx.db.maybeOne(findUnrenderedPage(documentId, page))
  if (undrawn === null) return { drawn: false }
  const source = await ctx.db.maybeOne(findExtractionSource(documentId))
  if (source === null) throw fail('document.missing')
  if (source.blob_id === null) throw fail('document.bytes_missing')
  const bytes = await ctx.blobs.readWhole(source.blob_id, source.byte_size)
  const image = await ctx.providers.renderPage(bytes, page, {
    mediaType: source.media_type,
    password: unsealPassword(ctx.secretKey, documentId, source.sealed_password),
    signal: ctx.signal,
  })
  await ctx.runFenced((tx) => tx.run(storePageImage(documentId, page, undrawn.job_id, image)))
  return { drawn: image !== null }
}
