import { z } from 'zod'
import {
  deleteDocument,
  documentContent,
  extractableDocument,
  pageImage,
  readDocument,
  readDocuments,
  readPage,
  readPages,
} from '../../sql/documents.ts'
import { fail } from '../../sql/errors.ts'
import { ExtractCounts, extract } from '../../tasks/documents/extract.ts'
import { enqueue } from '../../tasks/task.ts'
import { sendBlob } from '../blobs.ts'
import { matchesEtag, parseRange } from '../range.ts'
import type { Header } from '../reply.ts'
import { Answer, area, json, route } from '../route.ts'
import { count, RowId, Timestamp } from '../schemas.ts'
import { contentHeaders, upload } from './documents-upload.ts'

const Document = z
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
    tags: z.array(z.string()),
    created_at: Timestamp,
    updated_at: Timestamp.nullable(),
  })
  .meta({ id: 'Document' })

const DocumentList = z
  .strictObject({ items: z.array(Document), total: z.int(), page: z.int(), page_size: z.int() })
  .meta({ id: 'DocumentList' })

const Page = z
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
const PageWithText = Page.extend({ text: z.string() }).meta({ id: 'DocumentPageWithText' })

const DocumentParams = z.object({ id: RowId })
const PageParams = z.object({ id: RowId, number: RowId })

const UploadForm = z
  .object({
    file: z.string().meta({ format: 'binary' }),
    title: z.string().optional(),
    kind: z.string().optional(),
    document_date: z.string().optional(),
    source: z.string().optional(),
    channel: z.string().optional(),
    note: z.string().optional(),
  })
  .meta({ id: 'DocumentUpload' })

export const documents = area('documents', '/api/v1/documents', { auth: 'user' }, [
  route({
    method: 'post',
    path: '',
    summary: 'Store a file',
    description:
      'Identical bytes are stored once per owner: the second upload answers 200 with the document that is there.',
    body: UploadForm,
    bodyType: 'multipart',
    response: Document,
    status: 201,
    alsoAnswers: { 200: 'The same bytes were stored before; the document they are' },
    errors: [
      'document.empty',
      'document.file_required',
      'request.too_large',
      'request.malformed',
      'request.media_type',
    ],
    sideEffect: true,
    raw: upload,
  }),

  route({
    method: 'get',
    path: '',
    summary: 'The documents of the caller, newest first',
    query: z.object({
      page: count({ min: 1, max: 1_000_000, fallback: 1 }),
      page_size: count({ min: 1, max: 200, fallback: 50 }),
      kind: z.string().max(32).optional(),
      tag: z.string().max(64).optional(),
      search: z.string().max(500).optional(),
      include_superseded: z.stringbool().default(false),
    }),
    response: DocumentList,
    handle: async ({ query, caller, edge }) => {
      const { page, page_size, kind, tag, search, include_superseded } = query
      const offset = (page - 1) * page_size
      const values = [
        caller.ownerId,
        kind ?? null,
        tag ?? null,
        search || null,
        include_superseded,
        offset,
        page_size,
        page,
      ]
      return json((await edge.reader.text(readDocuments, values))!)
    },
  }),

  route({
    method: 'get',
    path: '/:id',
    summary: 'One document',
    params: DocumentParams,
    response: Document,
    errors: ['document.missing'],
    handle: async ({ params, caller, edge }) =>
      found(await edge.reader.text(readDocument, [params.id, caller.ownerId])),
  }),

  route({
    method: 'get',
    path: '/:id/content',
    summary: 'The stored bytes',
    description:
      'Takes `Range`, `If-None-Match` and `If-Range`. Only types that a browser shows safely are served inline.',
    params: DocumentParams,
    produces: 'application/octet-stream',
    alsoAnswers: {
      206: 'The range asked for',
      304: 'The client has these bytes',
      416: 'The range lies outside the content',
    },
    errors: ['document.missing', 'document.bytes_missing'],
    raw: async ({ params, caller, edge, request, responder, head }) => {
      const content = await edge.db.maybeOne(documentContent(params.id, caller.ownerId))
      if (content === null) throw fail('document.missing')
      if (content.blob_id === null) throw fail('document.bytes_missing')
      const etag = `"${content.sha256}"`
      const headers: Header[] = [
        ['etag', etag],
        ['accept-ranges', 'bytes'],
        ['cache-control', 'private, no-cache'],
        ...contentHeaders(content),
      ]
      if (matchesEtag(request.header('if-none-match'), etag)) return new Answer({ status: 304, headers })
      const ifRange = request.header('if-range')
      const range =
        ifRange !== '' && ifRange !== etag ? null : parseRange(request.header('range'), content.byte_size)
      if (range === 'unsatisfiable') {
        return new Answer({
          status: 416,
          headers: [['content-range', `bytes */${content.byte_size}`]],
          value: { detail: 'The range lies outside the content' },
        })
      }
      const { from, length } = range ?? { from: 0, length: content.byte_size }
      if (range !== null)
        headers.push(['content-range', `bytes ${from}-${from + length - 1}/${content.byte_size}`])
      const answer = head(range === null ? 200 : 206, headers)
      if (request.method === 'HEAD')
        responder.send({
          ...answer,
          headers: [...answer.headers, ['content-length', String(length)]],
          head: true,
        })
      else await sendBlob(edge.db, content.blob_id, responder.body(answer, length), from, length)
      return undefined
    },
  }),

  route({
    method: 'delete',
    path: '/:id',
    summary: 'Delete a document',
    params: DocumentParams,
    errors: ['document.missing', 'document.protected'],
    handle: async ({ params, caller, edge }) => {
      const document = await edge.db.maybeOne(deleteDocument(params.id, caller.ownerId))
      if (document === null) throw fail('document.missing')
      if (document.protected) throw fail('document.protected')
      return undefined
    },
  }),

  route({
    method: 'post',
    path: '/:id/extract',
    summary: 'Read the text of the pages',
    description:
      'Pages that were read before are skipped unless `force` is true. A request while an extraction of the document runs joins it.',
    params: DocumentParams,
    query: z.object({ background: z.string().optional(), force: z.stringbool().default(false) }),
    response: ExtractCounts.meta({ id: 'ExtractCounts' }),
    errors: ['document.missing', 'document.bytes_missing'],
    sideEffect: true,
    job: async ({ params, query, caller, edge, tx, requestId }) => {
      const document = await tx.maybeOne(extractableDocument(params.id, caller.ownerId))
      if (document === null) throw fail('document.missing')
      if (!document.has_bytes) throw fail('document.bytes_missing')
      const payload = { documentId: document.id, force: query.force }
      return enqueue(tx, extract, payload, {
        ownerId: caller.ownerId,
        requestId,
        maxTries: edge.settings.workerMaxTries,
      })
    },
  }),

  route({
    method: 'get',
    path: '/:id/pages',
    summary: 'What was read of each page',
    params: DocumentParams,
    response: z.array(Page),
    errors: ['document.missing'],
    handle: async ({ params, caller, edge }) =>
      found(await edge.reader.text(readPages, [params.id, caller.ownerId])),
  }),

  route({
    method: 'get',
    path: '/:id/pages/:number',
    summary: 'One page with its text',
    params: PageParams,
    response: PageWithText,
    errors: ['document.page_missing'],
    handle: async ({ params, caller, edge }) => {
      const text = await edge.reader.text(readPage, [params.id, caller.ownerId, params.number])
      if (text === null) throw fail('document.page_missing')
      return json(text)
    },
  }),

  route({
    method: 'get',
    path: '/:id/pages/:number/image',
    summary: 'The page as a picture',
    params: PageParams,
    produces: 'image/png',
    alsoAnswers: { 304: 'The client has this picture' },
    errors: ['document.page_missing', 'document.image_missing'],
    raw: async ({ params, caller, edge, request, responder, head }) => {
      const page = await edge.db.maybeOne(pageImage(params.id, caller.ownerId, params.number))
      if (page === null) throw fail('document.page_missing')
      if (page.image === null) throw fail('document.image_missing')
      const etag = `"${page.etag}"`
      const headers: Header[] = [
        ['etag', etag],
        ['cache-control', 'private, no-cache'],
        ['x-content-type-options', 'nosniff'],
      ]
      if (matchesEtag(request.header('if-none-match'), etag)) return new Answer({ status: 304, headers })
      responder.send({
        ...head(200, [['content-type', 'image/png'], ...headers]),
        body: page.image,
        head: request.method === 'HEAD',
      })
      return undefined
    },
  }),
])

function found<T>(text: string | null): Answer<T> {
  if (text === null) throw fail('document.missing')
  return json<T>(text)
}
