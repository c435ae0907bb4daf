import { z } from 'zod'
import { fail } from '../../sql/errors.ts'
import { extractionSource, storeImage, undrawnPage } from '../../sql/pages.ts'
import { defineTask } from '../task.ts'

/**
 * Draws one page that has a text layer, once somebody asks for its picture. In a queue of its own: whoever asks waits
 * for the answer, and long documents would be before it.
 */
export const draw = defineTask({
  name: 'documents.draw',
  queue: 'pictures',
  pool: 'children',
  actor: ({ documentId, page }) => `picture:${documentId}/${page}`,
  whenBusy: 'join',
  timeoutSeconds: 90,
  tries: 2,
  payload: z.strictObject({ documentId: z.int(), page: z.int() }),
  result: z.strictObject({ drawn: z.boolean() }),
  run: async (ctx, { documentId, page }) => {
    const undrawn = await ctx.db.maybeOne(undrawnPage(documentId, page))
    if (undrawn === null) return { drawn: false }
    const source = await ctx.db.maybeOne(extractionSource(documentId))
    if (source === null) throw fail('document.missing')
    if (source.blob_id === null) throw fail('document.bytes_missing')
    const bytes = await ctx.blobs.readWhole(source.blob_id, source.byte_size)
    const image = await ctx.providers.drawPage(bytes, source.media_type, page, ctx.signal)
    await ctx.fenced((tx) => tx.run(storeImage(documentId, page, undrawn.job_id, image)))
    return { drawn: image !== null }
  },
})
