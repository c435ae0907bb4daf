import { setAttachmentsDue } from '../../sql/documents/pages.ts'
import type { AttachmentInfo, PageReader, TaskContext } from '../context.ts'
import { enqueue } from '../task.ts'
import type { UploadedBlob } from './blobs/blobs.ts'
import { EXTRACTION_TASK } from './extraction.ts'
import { removeBidiControls } from './file-name.ts'
import { sniffMediaType } from './media.ts'
import { createDocument, discardUnusedUpload, findLostDuplicate } from './store.ts'

/** An email whose attachments become documents. */
export interface MailDocument {
  readonly id: number
  readonly ownerId: number | null
}

/**
 * Stores the attachments of an email as documents of its owner and enqueues the extraction of new ones. Clears the
 * email's `attachments_due` flag once all are stored.
 */
export async function storeAttachments(
  ctx: TaskContext,
  mail: MailDocument,
  pages: PageReader,
): Promise<void> {
  for (const [index, attachment] of pages.attachments.entries()) {
    ctx.signal.throwIfAborted()
    ctx.reportProgress(`Storing attachment ${index + 1} of ${pages.attachments.length}`)
    const blob = await ctx.blobs.store(pages.readAttachment(index))
    try {
      if (blob.byteSize > 0) await storeAttachment(ctx, mail, attachment, blob)
    } finally {
      await discardUnusedUpload(ctx.blobs, ctx.log, blob)
    }
  }
  await ctx.runFenced((tx) => tx.run(setAttachmentsDue(mail.id, false)))
}

const MAX_TITLE_CHARACTERS = 300

async function storeAttachment(
  ctx: TaskContext,
  { id: attachedToId, ownerId }: MailDocument,
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
