import { findDocumentContent, hasBlob } from '../../../sql/documents/blobs.ts'
import { fail } from '../../../sql/errors.ts'
import { CONTENT_ERRORS, CONTENT_STATUSES, sendStored } from '../../files/content.ts'
import { route } from '../../pipeline/route.ts'
import { DocumentParams } from './shapes.ts'
import { buildContentHeaders } from './upload.ts'

/** Serves the stored bytes of a document. */
export const contentRoute = route({
  method: 'get',
  path: '/:id/content',
  summary: 'Download the stored bytes of a document',
  description:
    'Supports `Range`, `If-None-Match` and `If-Range`. Only types that browsers display safely are served inline.',
  params: DocumentParams,
  produces: '*/*',
  alsoAnswers: CONTENT_STATUSES,
  errors: ['document.missing', ...CONTENT_ERRORS],
  raw: async (input) => {
    const { params, caller, edge } = input
    const content = await edge.db.maybeOne(findDocumentContent(params.id, caller.ownerId))
    if (content === null) throw fail('document.missing')
    if (!hasBlob(content)) throw fail('document.bytes_missing')
    const { byte_size: byteSize, sha256 } = content
    return sendStored(input, { at: content, byteSize, sha256, headers: buildContentHeaders(content) })
  },
})
