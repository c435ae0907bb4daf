import { z } from 'zod'
import { lockDigest, sealBlob, sealedBlob, unsealBlob } from '../../../sql/blobs.ts'
import { type Queries, readWithin } from '../../../sql/db.ts'
import { insertDocument, type NewDocument, readDocument } from '../../../sql/documents.ts'
import { fail } from '../../../sql/errors.ts'
import type { UploadedBlob } from '../../../tasks/documents/blobs.ts'
import { sniffMediaType } from '../../../tasks/documents/media.ts'
import type { Header } from '../../http/reply.ts'
import type { Caller } from '../../pipeline/auth.ts'
import type { Edge } from '../../pipeline/context.ts'
import { fingerprintOf } from '../../pipeline/idempotency.ts'
import { parsePart } from '../../pipeline/input.ts'
import { type Answer, type Input, type RawInput, verbatim } from '../../pipeline/route.ts'
import { readMultipart } from '../../uploads.ts'
import { METADATA } from './shapes.ts'

const Fields = z.object({ ...METADATA, source: z.string().trim().min(1).max(100) }).partial()

/** Streams a file into the store, then makes it a document; if that fails, nothing is left of it. */
export async function upload({
  caller,
  edge,
  request,
  transaction,
}: Input<unknown, unknown, unknown, Caller> & RawInput): Promise<Answer<unknown>> {
  let blob: UploadedBlob | null = null
  let file = { fileName: '', mediaType: '' }
  try {
    const { fields, hadFile } = await readMultipart(request, {
      maxBytes: edge.settings.maxUploadBytes,
      file: async (info, chunks) => {
        file = info
        blob = await edge.blobs.store(chunks)
      },
    })
    if (!hadFile || blob === null) {
      const problems = [{ loc: ['body', 'file'], msg: 'is required', type: 'invalid_type' }]
      throw fail('document.file_required', {}, { problems })
    }
    const stored: UploadedBlob = blob
    if (stored.byteSize === 0) throw fail('document.empty')
    // An empty form field counts as not filled in.
    const given = parsePart(
      Fields,
      'body',
      Object.fromEntries([...fields].filter(([, value]) => value !== '')),
    ) as z.output<typeof Fields>
    const mediaType = await sniffMediaType(stored.head, file)
    const fingerprint = (): Buffer =>
      fingerprintOf(request.path, stored.sha256, JSON.stringify([given, file]))
    const document = {
      ownerId: caller.ownerId,
      title: given.title ?? (file.fileName === '' ? 'Untitled' : file.fileName),
      kind: given.kind,
      mediaType,
      byteSize: stored.byteSize,
      sha256: stored.sha256,
      documentDate: given.document_date,
      source: given.source,
      channel: given.channel,
      note: given.note,
    }
    const lost = await lostTwin(edge, stored)
    return await transaction((tx) => becomeDocument(tx, stored, lost, document), fingerprint)
  } finally {
    if (blob !== null) await discard(edge, blob)
  }
}

/** Removes bytes that no document uses. A failure here does not fail the upload: a later collection removes them. */
async function discard(edge: Edge, blob: UploadedBlob): Promise<void> {
  try {
    await edge.blobs.discard(blob.at)
  } catch (error) {
    edge.log.warn({ err: error, blob: blob.at.blob_id }, 'The bytes of an upload could not be removed')
  }
}

/** The blob of an earlier upload of the same bytes, if the store has lost it. */
async function lostTwin(edge: Edge, { sha256, byteSize }: UploadedBlob): Promise<number | null> {
  const twin = await edge.db.maybeOne(sealedBlob(sha256))
  return twin === null || (await edge.blobs.exists(twin, byteSize)) ? null : twin.blob_id
}

async function becomeDocument(
  tx: Queries,
  blob: UploadedBlob,
  lost: number | null,
  document: NewDocument,
): Promise<Answer<unknown>> {
  await tx.run(lockDigest(blob.sha256))
  // The store has lost the bytes of an earlier upload; these take their place.
  if (lost !== null) await tx.run(unsealBlob(lost))
  await seal(tx, blob)
  const { id, created } = await tx.one(insertDocument(document))
  const text = await readWithin(tx, readDocument, [id, document.ownerId])
  if (text === null) throw fail('document.missing')
  return verbatim(text, { status: created ? 201 : 200, headers: [['location', `/api/v1/documents/${id}`]] })
}

/** Ensures that the bytes are stored: these, or the same ones of an earlier upload. */
async function seal(tx: Queries, { at, sha256, byteSize }: UploadedBlob): Promise<void> {
  if ((await tx.maybeOne(sealBlob(at.blob_id, sha256, byteSize))) !== null) return
  // Neither: the upload took so long that its bytes were collected.
  if ((await tx.maybeOne(sealedBlob(sha256))) === null) throw fail('document.store_failed')
}

// Types that a browser shows without running anything in them. Everything else is offered as a download.
const INLINE = new Set([
  'application/pdf',
  'image/png',
  'image/jpeg',
  'image/webp',
  'image/gif',
  'image/tiff',
  'text/plain',
])

/** Headers for stored bytes: never sniffed, and inline only where that is safe. */
export function contentHeaders(content: { media_type: string; title: string }): Header[] {
  const disposition = INLINE.has(content.media_type) ? 'inline' : 'attachment'
  const ascii = content.title.replace(/[^\x20-\x7e]|["\\%]/g, '_')
  // RFC 6266, section 4.3, and RFC 8187 for non-ASCII characters.
  const extended = encodeURIComponent(content.title.toWellFormed()).replace(
    /['()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return [
    [
      'content-type',
      content.media_type.startsWith('text/') ? `${content.media_type}; charset=utf-8` : content.media_type,
    ],
    ['content-disposition', `${disposition}; filename="${ascii}"; filename*=UTF-8''${extended}`],
    ['x-content-type-options', 'nosniff'],
    ['content-security-policy', "default-src 'none'; sandbox"],
  ]
}
