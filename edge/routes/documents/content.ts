import { documentContent, hasBlob } from '../../../sql/blobs.ts'
import { fail } from '../../../sql/errors.ts'
import { sendPieces } from '../../blobs.ts'
import { matchesEtag, parseRange } from '../../http/range.ts'
import type { Header } from '../../http/reply.ts'
import { Answer, route } from '../../pipeline/route.ts'
import { DocumentParams } from './shapes.ts'
import { contentHeaders } from './upload.ts'

/** The bytes of a document as they were stored. */
export const contentRoute = route({
  method: 'get',
  path: '/:id/content',
  summary: 'Download the stored bytes of a document',
  description:
    'Supports `Range`, `If-None-Match` and `If-Range`. Only types that browsers show safely are served inline.',
  params: DocumentParams,
  produces: '*/*',
  alsoAnswers: {
    206: 'The requested range',
    304: 'The client already has these bytes',
    416: 'The range lies outside the content',
  },
  errors: ['document.missing', 'document.bytes_missing', 'document.store_failed'],
  raw: async ({ params, caller, edge, request, responder, head }) => {
    const content = await edge.db.maybeOne(documentContent(params.id, caller.ownerId))
    if (content === null) throw fail('document.missing')
    if (!hasBlob(content)) throw fail('document.bytes_missing')
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
    if (request.method === 'HEAD') {
      if (!(await edge.blobs.exists(content, content.byte_size))) throw fail('document.bytes_missing')
      responder.send({
        ...answer,
        headers: [...answer.headers, ['content-length', String(length)]],
        head: true,
      })
    } else await sendPieces(edge.blobs.read(content, from, length), () => responder.body(answer, length))
    return undefined
  },
})
