import { setAttachmentsDue } from '../../sql/documents/pages.ts'
import { type AttachmentInfo, AttachmentUnreadable, type PageReader, type TaskContext } from '../context.ts'
import { enqueue } from '../task.ts'
import type { UploadedBlob } from './blobs/blobs.ts'
import { EXTRACTION_TASK } from './extraction.ts'
import { removeBidiControls } from './file-name.ts'
import { sniffMediaType } from './media.ts'
import { createDocument, discardUnusedUpload, findLostDuplicate } from './store.ts'

/** An email or PDF whose attachments become documents. */
export interface CarrierDocument {
  readonly id: number
  readonly ownerId: number | null
}

/**
 * Stores the attachments of a document as documents of its owner and enqueues the extraction of new ones. Skips those
 * that cannot be unpacked. Clears the document's `attachments_due` flag once all are stored.
 */
export async function storeAttachments(
  ctx: TaskContext,
  carrier: CarrierDocument,
  pages: PageReader,
): Promise<void> {
  let storedBytes = 0
  const maxBytes = MAX_UPLOADS * ctx.settings.maxUploadBytes
  for (const [index, attachment] of pages.attachments.entries()) {
    ctx.signal.throwIfAborted()
    ctx.reportProgress(`Storing attachment ${index + 1} of ${pages.attachments.length}`)
    const blob = await storeBytes(ctx, pages, index, maxBytes - storedBytes)
    if (blob === null) continue
    storedBytes += blob.byteSize
    try {
      if (blob.byteSize > 0) await storeAttachment(ctx, carrier, attachment, blob)
    } finally {
      await discardUnusedUpload(ctx.blobs, ctx.log, blob)
    }
  }
  await ctx.runFenced((tx) => tx.run(setAttachmentsDue(carrier.id, false)))
}

// Limit of all attachments together, in largest uploads. A PDF may compress them a thousandfold.
const MAX_UPLOADS = 4

/** Stores the bytes of an attachment; null if they cannot be unpacked, or exceed `maxBytes`. */
async function storeBytes(
  { blobs, log }: TaskContext,
  pages: PageReader,
  index: number,
  maxBytes: number,
): Promise<UploadedBlob | null> {
  let reason: string | null = null
  async function* read(): AsyncGenerator<Uint8Array, void> {
    let bytes = 0
    try {
      for await (const piece of pages.readAttachment(index)) {
        bytes += piece.length
        if (bytes > maxBytes) throw new AttachmentUnreadable('The attachments are too large')
        yield piece
      }
    } catch (error) {
      if (error instanceof AttachmentUnreadable) reason = error.message
      throw error
    }
  }
  try {
    return await blobs.store(read())
  } catch (error) {
    if (reason === null) throw error
    log.warn({ attachment: index + 1, reason }, 'Attachment skipped')
    return null
  }
}

const MAX_TITLE_CHARACTERS = 300

async function storeAttachment(
  ctx: TaskContext,
  { id: attachedToId, ownerId }: CarrierDocument,
  { name, mediaType }: AttachmentInfo,
  blob: UploadedBlob,
): Promise<void> {
  const fileName = removeBidiControls(name).trim()
  const sniffed = await sniffMediaType(blob.head, { fileName, mediaType })
  const lostBlob = await findLostDuplicate(ctx.db, ctx.blobs, blob)
  const title = fileName.slice(0, MAX_TITLE_CHARACTERS).toWellFormed().replaceAll('\0', '') || 'Untitled'
  const options = { ownerId, requestId: ctx.job.requestId, settings: ctx.settings }
  await ctx.runFenced(async (tx) => {
    const document = { ownerId, title, mediaType: sniffed, source: 'attachment', attachedToId }
    const { id, created } = await createDocument(tx, blob, lostBlob, document, ctx.settings.quotas)
    if (created) await enqueue(tx, EXTRACTION_TASK, { documentId: id, force: false }, options)
  })
}
