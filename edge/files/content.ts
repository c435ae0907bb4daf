import type { BlobLocation } from '../../sql/documents/blobs.ts'
import { fail } from '../../sql/errors.ts'
import { writePieces } from '../http/pieces.ts'
import { matchesEtag, parseRange } from '../http/range.ts'
import { formatFailure, type Header } from '../http/reply.ts'
import type { EdgeRequest } from '../http/server.ts'
import type { Edge } from '../pipeline/context.ts'
import { Answer, type RawInput } from '../pipeline/route.ts'

/** Stored bytes and the metadata to serve them. */
export interface StoredContent {
  readonly at: BlobLocation
  readonly byteSize: number
  /** Hexadecimal digest, which also serves as the entity tag. */
  readonly sha256: string
  /** Headers besides those for caching and ranges, which `sendContent` adds. */
  readonly headers: readonly Header[]
}

/** Statuses that content routes return besides 200. */
export const CONTENT_STATUSES = {
  206: 'The requested range',
  304: 'The client already has these bytes',
} as const

/** Errors of routes that serve stored bytes. */
export const CONTENT_ERRORS = ['document.bytes_missing', 'document.store_failed'] as const

interface Content {
  readonly etag: string
  readonly byteSize: number
  /** Headers besides those for caching and ranges, which `sendContent` adds. */
  readonly headers: readonly Header[]
  read(from: number, length: number): AsyncIterable<Uint8Array>
  /**
   * Checks that the bytes exist. `sendContent` calls this for HEAD, instead of `read`.
   * @throws if the bytes are missing.
   */
  checkExists?(): Promise<void>
}

type ContentRequest = Pick<RawInput, 'responder' | 'head'> & { readonly request: EdgeRequest }

/**
 * Sends content from the blob store.
 * @throws fail('document.bytes_missing')
 */
export async function sendStored(
  contentRequest: ContentRequest & { readonly edge: Edge },
  { at, byteSize, sha256, headers }: StoredContent,
): Promise<Answer<unknown> | undefined> {
  const { blobs } = contentRequest.edge
  return sendContent(contentRequest, {
    etag: `"${sha256}"`,
    byteSize,
    headers,
    read: (from, length) => blobs.read(at, from, length),
    checkExists: async () => {
      if (!(await blobs.exists(at, byteSize))) throw fail('document.bytes_missing')
    },
  })
}

/** Sends the content, or the range that a GET requests (RFC 9110, sections 13 and 14). Other methods ignore ranges. */
export async function sendContent(
  { request, responder, head }: ContentRequest,
  content: Content,
): Promise<Answer<unknown> | undefined> {
  const { etag, byteSize } = content
  const cacheHeaders = buildCachingHeaders(etag)
  const isRead = request.method === 'GET' || request.method === 'HEAD'
  if (isRead && matchesEtag(request.header('if-none-match'), etag))
    return new Answer({ status: 304, headers: cacheHeaders })
  const range = parseRequestedRange(request, etag, byteSize)
  if (range === 'unsatisfiable') {
    return new Answer({
      status: 416,
      headers: [['content-range', `bytes */${byteSize}`]],
      json: formatFailure(fail('request.range')),
    })
  }
  const { from, length } = range ?? { from: 0, length: byteSize }
  const reply = head(range === null ? 200 : 206, [
    ...cacheHeaders,
    ...content.headers,
    ...(range === null ? [] : [['content-range', `bytes ${from}-${from + length - 1}/${byteSize}`] as const]),
  ])
  if (request.method === 'HEAD') {
    await content.checkExists?.()
    const headers: Header[] = [...reply.headers, ['content-length', String(length)]]
    responder.send({ ...reply, headers, isHead: true })
  } else await writePieces(content.read(from, length), () => responder.beginBody(reply, length))
  return undefined
}

/** Returns headers that let only private caches store the content, and make them revalidate it before each use. */
export const buildCachingHeaders = (etag: string): readonly Header[] => [
  ['etag', etag],
  ['accept-ranges', 'bytes'],
  ['cache-control', 'private, no-cache'],
]

function parseRequestedRange(
  request: EdgeRequest,
  etag: string,
  size: number,
): ReturnType<typeof parseRange> {
  const ifRange = request.header('if-range')
  if (request.method !== 'GET' || (ifRange !== '' && ifRange !== etag)) return null
  return parseRange(request.header('range'), size)
}
