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

/** Content that is sent whole or in part. */
interface Content {
  readonly etag: string
  readonly byteSize: number
  /** Headers beside those of caching and ranges. */
  readonly headers: readonly Header[]
  read(from: number, length: number): AsyncIterable<Uint8Array>
  /** Called for a HEAD, which reads nothing. @throws when the bytes are missing. */
  check?(): Promise<void>
}

type ContentRequest = Pick<RawInput, 'responder' | 'head'> & { readonly request: EdgeRequest }

/** Sends stored bytes, see `sendContent`. @throws fail('document.bytes_missing') */
export async function sendStored(
  asked: ContentRequest & { readonly edge: Edge },
  { at, byteSize, sha256, headers }: Served,
): Promise<Answer<unknown> | undefined> {
  const { blobs } = asked.edge
  return sendContent(asked, {
    etag: `"${sha256}"`,
    byteSize,
    headers,
    read: (from, length) => blobs.read(at, from, length),
    check: async () => {
      if (!(await blobs.exists(at, byteSize))) throw fail('document.bytes_missing')
    },
  })
}

/**
 * Sends content, or the range of it that a GET asks for; a HEAD has none (RFC 9110, sections 13 and 14). Another method
 * is answered with all of it.
 */
export async function sendContent(
  { request, responder, head }: ContentRequest,
  content: Content,
): Promise<Answer<unknown> | undefined> {
  const { etag, byteSize } = content
  const shared = cachingHeaders(etag)
  const isRead = request.method === 'GET' || request.method === 'HEAD'
  if (isRead && matchesEtag(request.header('if-none-match'), etag))
    return new Answer({ status: 304, headers: shared })
  const range = rangeOf(request, etag, byteSize)
  if (range === 'unsatisfiable') {
    return new Answer({
      status: 416,
      headers: [['content-range', `bytes */${byteSize}`]],
      value: { detail: 'The range lies outside the content' },
    })
  }
  const { from, length } = range ?? { from: 0, length: byteSize }
  const answer = head(range === null ? 200 : 206, [
    ...shared,
    ...content.headers,
    ...(range === null ? [] : [['content-range', `bytes ${from}-${from + length - 1}/${byteSize}`] as const]),
  ])
  if (request.method === 'HEAD') {
    await content.check?.()
    const headers: Header[] = [...answer.headers, ['content-length', String(length)]]
    responder.send({ ...answer, headers, head: true })
  } else await sendPieces(content.read(from, length), () => responder.body(answer, length))
  return undefined
}

/** The headers of content whose entity tag is `etag`: for its owner alone, to be asked for again each time. */
export const cachingHeaders = (etag: string): readonly Header[] => [
  ['etag', etag],
  ['accept-ranges', 'bytes'],
  ['cache-control', 'private, no-cache'],
]

function rangeOf(request: EdgeRequest, etag: string, size: number): ReturnType<typeof parseRange> {
  const ifRange = request.header('if-range')
  if (request.method !== 'GET' || (ifRange !== '' && ifRange !== etag)) return null
  return parseRange(request.header('range'), size)
}
