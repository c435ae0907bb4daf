import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { KeptText } from './http/kept-text.ts'
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

/** Headers of pages, besides their policies: other sites share no windows with them, and never learn their addresses. */
export const PAGE_HEADERS: readonly Header[] = [
  ['cross-origin-opener-policy', 'same-origin'],
  ['referrer-policy', 'no-referrer'],
]

interface Version {
  readonly etag: string
  readonly text: KeptText
}

/** The latest version of each file that was sent, with what it was compressed to. */
const versions = new Map<string, Version>()

/**
 * Responds with a static file. Browsers cache it but revalidate it each time, so that all parts of a page are of the
 * same version after an update. @param file one of an allow-list: each is kept.
 */
export async function sendFile(
  { request, responder, head }: Pick<RawInput, 'responder' | 'head'> & { readonly request: EdgeRequest },
  file: URL,
  headers: readonly Header[],
): Promise<Answer<unknown> | undefined> {
  const { etag, text } = await versionOf(file)
  const all: Header[] = [
    // Weak: it names the text, in whichever encoding.
    ['etag', `W/${etag}`],
    ['cache-control', 'no-cache'],
    ...headers,
  ]
  if (matchesEtag(request.header('if-none-match'), etag)) return new Answer({ status: 304, headers: all })
  return text.send(request, responder, (status, given) => head(status, [...given, ...all]))
}

async function versionOf(file: URL): Promise<Version> {
  const body = await readFile(file)
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`
  const known = versions.get(file.href)
  if (known?.etag === etag) return known
  const type = TYPES[file.pathname.slice(file.pathname.lastIndexOf('.') + 1)]!
  const version = { etag, text: new KeptText(body.toString(), type) }
  versions.set(file.href, version)
  return version
}
