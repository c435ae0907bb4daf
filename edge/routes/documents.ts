import { z } from 'zod'
import { deleteDocument, readDocument, readDocuments } from '../../sql/documents.ts'
import { fail } from '../../sql/errors.ts'
import { area, json, route } from '../route.ts'
import { count } from '../schemas.ts'
import { contentRoute } from './documents/content.ts'
import { pageRoutes } from './documents/pages.ts'
import { Document, DocumentList, DocumentParams, found } from './documents/shapes.ts'
import { upload } from './documents/upload.ts'

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

  contentRoute,
  ...pageRoutes,
])
