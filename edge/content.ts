import type { BlobAt } from '../sql/blobs.ts'
import { fail } from '../sql/errors.ts'
import { sendPieces } from './blobs.ts'
import { matchesEtag, parseRange } from './http/range.ts'
import type { Header } from './http/reply.ts'
import type { EdgeRequest } from './http/server.ts'
import type { Edge } from './pipeline/context.ts'
import { Answer, type RawInput } from './pipeline/route.ts'

/** Stored bytes as they are served. */
export interface Served {
  readonly at: BlobAt
  readonly byteSize: number
  /** In hexadecimal: their entity tag. */
  readonly sha256: string
  /** Headers beside those of caching and ranges. */
  readonly headers: readonly Header[]
}

/** What such a route answers beside 200. */
export const SERVED_ANSWERS = {
  206: 'The requested range',
  304: 'The client already has these bytes',
  416: 'The range lies outside the content',
} as const

/** Sends stored bytes, or the range of them that is asked for (RFC 9110, sections 13 and 14). */
export async function sendStored(
  { edge, request, responder, head }: RawInput & { readonly edge: Edge; readonly request: EdgeRequest },
  { at, byteSize, sha256, headers: own }: Served,
): Promise<Answer<unknown> | undefined> {
  const etag = `"${sha256}"`
  const headers: Header[] = [
    ['etag', etag],
    ['accept-ranges', 'bytes'],
    ['cache-control', 'private, no-cache'],
    ...own,
  ]
  if (matchesEtag(request.header('if-none-match'), etag)) return new Answer({ status: 304, headers })
  const ifRange = request.header('if-range')
  const range = ifRange !== '' && ifRange !== etag ? null : parseRange(request.header('range'), byteSize)
  if (range === 'unsatisfiable') {
    return new Answer({
      status: 416,
      headers: [['content-range', `bytes */${byteSize}`]],
      value: { detail: 'The range lies outside the content' },
    })
  }
  const { from, length } = range ?? { from: 0, length: byteSize }
  if (range !== null) headers.push(['content-range', `bytes ${from}-${from + length - 1}/${byteSize}`])
  const answer = head(range === null ? 200 : 206, headers)
  if (request.method === 'HEAD') {
    if (!(await edge.blobs.exists(at, byteSize))) throw fail('document.bytes_missing')
    responder.send({
      ...answer,
      headers: [...answer.headers, ['content-length', String(length)]],
      head: true,
    })
  } else await sendPieces(edge.blobs.read(at, from, length), () => responder.body(answer, length))
  return undefined
}
