import { z } from 'zod'
import { readWithin } from '../../../sql/db.ts'
import { readDocument } from '../../../sql/documents/documents.ts'
import { fail } from '../../../sql/errors.ts'
import { Label } from '../../../tasks/documents/bulk.task.ts'
import { buildDocumentFileName } from '../../../tasks/documents/file-name.ts'
import { createDocument, discardUnusedUpload, findLostDuplicate } from '../../../tasks/documents/store.ts'
import { storeUpload } from '../../files/upload-store.ts'
import type { Header } from '../../http/reply.ts'
import type { Caller } from '../../pipeline/access/auth.ts'
import { type Answer, answerCompactJson, type Input, type RawInput } from '../../pipeline/route.ts'
import { computeFingerprint } from '../../pipeline/write/idempotency.ts'
import { METADATA } from './shapes.ts'

const MAX_TAGS = 100

/** Labels, each in a field of its own, or all as a JSON array. */
const Tags = z
  .array(z.string())
  .transform((values, context) => {
    if (values.length !== 1 || !values[0]!.startsWith('[')) return values
    try {
      return JSON.parse(values[0]!)
    } catch {
      context.addIssue({ code: 'custom', message: 'must be labels or a JSON array of them' })
      return z.NEVER
    }
  })
  .pipe(z.array(Label).max(MAX_TAGS))

const Fields = z.object({ ...METADATA, source: z.string().trim().min(1).max(100), tags: Tags }).partial()

/** Streams a file into the blob store, then creates its document. A failure discards the stored bytes. */
export async function uploadDocument({
  caller,
  edge,
  request,
  transaction,
}: Input<unknown, unknown, unknown, Caller> & RawInput): Promise<Answer<unknown>> {
  const { maxUploadBytes: maxBytes } = edge.settings
  const {
    blob,
    file,
    fields: given,
    mediaType,
  } = await storeUpload(edge, request, { fields: Fields, repeatable: ['tags'], maxBytes })
  try {
    const fingerprint = (): Buffer =>
      computeFingerprint(edge.keys, request.path, blob.sha256, JSON.stringify([given, file]))
    const document = {
      ownerId: caller.ownerId,
      title: titleOf(given.title, file.fileName),
      kind: given.kind,
      mediaType,
      documentDate: given.document_date,
      source: given.source,
      channel: given.channel,
      note: given.note,
      tags: [...new Set(given.tags)],
    }
    const lost = await findLostDuplicate(edge.db, edge.blobs, blob)
    return await transaction(async (tx) => {
      const { id, created } = await createDocument(tx, blob, lost, document, edge.settings.quotas)
      const text = await readWithin(tx, readDocument, [id, caller.ownerId])
      if (text === null) throw fail('document.missing')
      const headers: Header[] = [['location', `/api/v1/documents/${id}`]]
      return answerCompactJson(text, { status: created ? 201 : 200, headers })
    }, fingerprint)
  } finally {
    await discardUnusedUpload(edge.blobs, edge.log, blob)
  }
}

/** Returns the given title of a document, or else its file name. */
export const titleOf = (given: string | undefined, fileName: string): string =>
  given ?? (fileName === '' ? 'Untitled' : fileName)

// Media types that browsers display without running active content. All others are served as downloads.
const INLINE_MEDIA_TYPES = new Set([
  'application/pdf',
  'image/png',
  'image/jpeg',
  'image/webp',
  'image/gif',
  'image/tiff',
  'text/plain',
])

/** Returns headers that sandbox stored bytes and let browsers display only safe types. */
export function buildContentHeaders(content: {
  readonly media_type: string
  readonly encoding: string | null
  readonly title: string
}): Header[] {
  const disposition = INLINE_MEDIA_TYPES.has(content.media_type) ? 'inline' : 'attachment'
  const name = buildDocumentFileName(content.title, content.media_type)
  const ascii = name.replace(/[^\x20-\x7e]|["\\%]/g, '_')
  // RFC 6266, section 4.3, and RFC 8187 for non-ASCII characters.
  const extended = encodeURIComponent(name.toWellFormed()).replace(
    /['()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  // Without a charset, browsers detect the encoding.
  const charset =
    content.media_type.startsWith('text/') && content.encoding !== null ? `; charset=${content.encoding}` : ''
  return [
    ['content-type', `${content.media_type}${charset}`],
    ['content-disposition', `${disposition}; filename="${ascii}"; filename*=UTF-8''${extended}`],
    ['content-security-policy', "default-src 'none'; sandbox"],
  ]
}
