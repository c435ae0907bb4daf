import { z } from 'zod'
import { extractableDocument, pageImage, readPage, readPages } from '../../../sql/documents.ts'
import { fail } from '../../../sql/errors.ts'
import { ExtractCounts, extract } from '../../../tasks/documents/extract.ts'
import { enqueue } from '../../../tasks/task.ts'
import { matchesEtag } from '../../range.ts'
import type { Header } from '../../reply.ts'
import { Answer, json, route } from '../../route.ts'
import { DocumentParams, found, Page, PageParams, PageWithText } from './shapes.ts'

/** Reading a document's pages, and what was read. */
export const pageRoutes = [
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
]
