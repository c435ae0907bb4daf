import { z } from 'zod'
import { fail } from '../../../sql/errors.ts'
import { removeBidiControls } from '../../../tasks/documents/file-name.ts'
import { PageFields } from '../../pipeline/request/lists.ts'
import { Day, LongRowId, RowId, Timestamp } from '../../pipeline/request/schemas.ts'
import { type Answer, answerCompactJson } from '../../pipeline/route.ts'

/** Requests and responses of the document routes. */

const Hit = z.strictObject({ page_number: z.int(), snippet: z.string() }).meta({ id: 'DocumentHit' })

export const Document = z
  .strictObject({
    id: z.int(),
    title: z.string(),
    kind: z.string(),
    media_type: z.string(),
    byte_size: z.int(),
    sha256: z.string(),
    page_count: z.int().nullable(),
    document_date: z.iso.date().nullable(),
    received_at: Timestamp,
    source: z.string(),
    channel: z.string().nullable(),
    note: z.string().nullable(),
    protected: z.boolean(),
    supersedes_id: z.int().nullable(),
    superseded_by_id: z.int().nullable(),
    attached_to_id: z.int().nullable().describe('Id of the mail or PDF that it was attached to'),
    tags: z.array(z.string()),
    created_at: Timestamp,
    updated_at: Timestamp.nullable(),
    hits: z.array(Hit).optional().meta({ description: 'Matching pages; only for a search with `hits`' }),
    deleted_at: Timestamp.optional().meta({ description: 'Only in the trash' }),
    expires_at: Timestamp.optional().meta({
      description: 'Only in the trash: time until which the document can be restored',
    }),
  })
  .meta({ id: 'Document' })

export const DocumentList = z
  .strictObject({ items: z.array(Document), ...PageFields })
  .meta({ id: 'DocumentList' })

export const Page = z
  .strictObject({
    page_number: z.int(),
    status: z.enum(['read', 'unread']),
    method: z.enum(['text_layer', 'vision', 'none']),
    model: z.string().nullable(),
    detail: z.string().nullable(),
    has_image: z.boolean(),
    width: z.int().nullable(),
    height: z.int().nullable(),
  })
  .meta({ id: 'DocumentPage' })
export const PageWithText = Page.extend({ text: z.string() }).meta({ id: 'DocumentPageWithText' })

/** Metadata fields that the owner can set. */
export const METADATA = {
  title: z.string().overwrite(removeBidiControls).trim().min(1).max(300),
  kind: z.string().trim().min(1).max(32),
  document_date: Day,
  channel: z.string().trim().max(100),
  note: z.string().max(10_000),
}

export const DocumentParams = z.object({ id: LongRowId })
export const PageParams = z.object({ id: LongRowId, number: RowId })

/**
 * Answers with the JSON text of a document.
 * @throws fail('document.missing') if `text` is null.
 */
export function answerDocument<T>(text: string | null): Answer<T> {
  if (text === null) throw fail('document.missing')
  return answerCompactJson<T>(text)
}
