import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { matchesEtag } from './http/range.ts'
import type { Header } from './http/reply.ts'
import type { EdgeRequest } from './http/server.ts'
import { Answer, type RawInput } from './pipeline/route.ts'

const TYPES: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
}

/**
 * Responds with a static file. Browsers cache it but revalidate it each time, so that all parts of a page are of the
 * same version after an update.
 */
export async function sendFile(
  { request, responder, head }: Pick<RawInput, 'responder' | 'head'> & { readonly request: EdgeRequest },
  file: URL,
  headers: readonly Header[],
): Promise<Answer<unknown> | undefined> {
  const body = await readFile(file)
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`
  const all: Header[] = [
    ['etag', etag],
    ['cache-control', 'no-cache'],
    ['x-content-type-options', 'nosniff'],
    ...headers,
  ]
  if (matchesEtag(request.header('if-none-match'), etag)) return new Answer({ status: 304, headers: all })
  const type = TYPES[file.pathname.slice(file.pathname.lastIndexOf('.') + 1)]!
  responder.send({
    ...head(200, [['content-type', type], ...all]),
    body,
    head: request.method === 'HEAD',
  })
  return undefined
}
