import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { CachedText } from '../http/cached-text.ts'
import { matchesEtag } from '../http/range.ts'
import type { Header } from '../http/reply.ts'
import type { EdgeRequest } from '../http/server.ts'
import { Answer, type RawInput } from '../pipeline/route.ts'

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  json: 'application/json; charset=utf-8',
  mjs: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
}

/** Headers that isolate pages from windows of other sites and send no referrer. Each page adds its own policies. */
export const PAGE_HEADERS: readonly Header[] = [
  ['cross-origin-opener-policy', 'same-origin'],
  ['referrer-policy', 'no-referrer'],
]

interface FileVersion {
  readonly etag: string
  readonly text: CachedText
}

/** The last sent version of each file, with its compressed forms. */
const cachedVersions = new Map<string, FileVersion>()

/**
 * Sends a static file. Browsers revalidate it on each use, so that all parts of a page match.
 * @param file from an allow-list, because every file stays in memory.
 */
export async function sendFile(
  { request, responder, head }: Pick<RawInput, 'responder' | 'head'> & { readonly request: EdgeRequest },
  file: URL,
  headers: readonly Header[],
): Promise<Answer<unknown> | undefined> {
  const { etag, text } = await loadVersion(file)
  const allHeaders: Header[] = [
    // A weak tag, because all content codings share it.
    ['etag', `W/${etag}`],
    ['cache-control', 'no-cache'],
    ...headers,
  ]
  if (matchesEtag(request.header('if-none-match'), etag))
    return new Answer({ status: 304, headers: allHeaders })
  return text.send(request, responder, (status, given) => head(status, [...given, ...allHeaders]))
}

// All pages begin with this file.
const HEAD = new URL('../pages/head.html', import.meta.url)

async function loadVersion(file: URL): Promise<FileVersion> {
  const own = await readFile(file)
  const body = file.pathname.endsWith('.html') ? Buffer.concat([await readFile(HEAD), own]) : own
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`
  const cached = cachedVersions.get(file.href)
  if (cached?.etag === etag) return cached
  const type = MEDIA_TYPES[file.pathname.slice(file.pathname.lastIndexOf('.') + 1)]!
  const version = { etag, text: new CachedText(body.toString(), type) }
  cachedVersions.set(file.href, version)
  return version
}
