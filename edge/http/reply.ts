import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { ExceededBudget } from '../../sql/budgets/errors.ts'
import type { Failure } from '../../sql/errors.ts'
import { isLoopback } from '../../tasks/platform/addresses.ts'
import type { Settings } from '../../tasks/platform/settings/settings.ts'
import { isHttps } from './cookies.ts'
import { JSON_HEADER_BLOCK } from './head.ts'
import type { EdgeRequest, Responder } from './server.ts'

export type Header = readonly [string, string]

/** A complete response in a form that can be stored. */
export interface StoredReply {
  readonly status: number
  readonly headers: readonly Header[]
  readonly body: string
}

const brotliAsync = promisify(brotliCompress)
const gzipAsync = promisify(gzip)

// Below this size the extra headers cost more than compression saves.
const MIN_COMPRESSED_BYTES = 1024
const BROTLI_OPTIONS = { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }

/** Returns the headers that every response has. */
export function buildCommonHeaders(settings: Settings): readonly Header[] {
  const common: Header[] = [
    ['x-content-type-options', 'nosniff'],
    // uWS closes connections that are idle for 8 to 12 s. A request sent during the close would be lost.
    ['keep-alive', 'timeout=7'],
  ]
  // On localhost, browsers would also enforce HTTPS for other services.
  if (isHttps(settings) && !isLoopback(new URL(settings.publicBaseUrl).hostname))
    common.push(['strict-transport-security', 'max-age=31536000'])
  return common
}

/**
 * Sends JSON, compressed if it is large enough and the client accepts that. Resolves once the responder has the
 * response.
 */
export function sendJson(
  request: EdgeRequest,
  responder: Responder,
  status: number,
  headers: readonly Header[],
  text: string,
): Promise<void> | void {
  const head = request.method === 'HEAD'
  if (text.length < MIN_COMPRESSED_BYTES) {
    responder.send({ status, block: JSON_HEADER_BLOCK, headers, body: text, isHead: head })
    return
  }
  const encoding = chooseEncoding(request.header('accept-encoding'))
  const varied: Header[] = [['vary', 'accept-encoding'], ...headers]
  if (encoding === null) {
    responder.send({ status, block: JSON_HEADER_BLOCK, headers: varied, body: text, isHead: head })
    return
  }
  return compress(encoding, text).then((body) => {
    const headers: Header[] = [...varied, ['content-encoding', encoding]]
    responder.send({ status, block: JSON_HEADER_BLOCK, headers, body, isHead: head })
  })
}

export function compress(encoding: 'br' | 'gzip', text: string | Buffer): Promise<Buffer> {
  return encoding === 'br' ? brotliAsync(text, BROTLI_OPTIONS) : gzipAsync(text, { level: 5 })
}

/** Negotiates the content coding (RFC 9110, section 12.5.3). Returns null for no compression. */
export function chooseEncoding(header: string): 'br' | 'gzip' | null {
  const weights = new Map<string, number>()
  for (const item of header.split(',')) {
    const [coding = '', ...parameters] = item.trim().toLowerCase().split(';')
    const q = Number(
      parameters
        .find((p) => p.trim().startsWith('q='))
        ?.trim()
        .slice(2) ?? 1,
    )
    weights.set(coding.trim().replace(/^x-gzip$/, 'gzip'), Number.isNaN(q) ? 0 : q)
  }
  // `*` matches every coding that the header does not list.
  const weightOf = (name: string): number => weights.get(name) ?? weights.get('*') ?? 0
  const [br, gzip] = [weightOf('br'), weightOf('gzip')]
  if (br > 0 && br >= gzip) return 'br'
  return gzip > 0 ? 'gzip' : null
}

/** The rules of an area for its failures. */
export interface FailureRules {
  /** Status of invalid input: 422, or 400 where SPEC requires it. */
  readonly invalidStatus: 422 | 400
  /** With `openai`, failures also have the `error` of OpenAI's protocol, which its clients read. */
  readonly errorFormat: 'plain' | 'openai'
}

/**
 * Formats a failure as JSON with `detail` and `code`. Invalid input adds the list of problems in `errors`, and an exceeded
 * budget adds `budget`.
 */
export function formatFailure(failure: Failure): string {
  return JSON.stringify(toPlainError(failure))
}

const toPlainError = ({ code, detail, problems, budget }: Failure) => {
  return { detail, errors: problems, code, budget }
}

/** Formats a failure like {@link formatFailure}, with the `error` of OpenAI's protocol next to it. */
export function formatOpenAiFailure(failure: Failure, status: number): string {
  return JSON.stringify({ ...toPlainError(failure), error: toOpenAiError(failure, status) })
}

/** Returns a failure in the form of OpenAI's protocol (platform.openai.com/docs/guides/error-codes). */
export function toOpenAiError({ code, detail, problems }: Failure, status: number) {
  const type = OPENAI_TYPES[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error')
  const param = problems?.[0]?.loc.slice(1).join('.') ?? null
  return { message: detail, type, param, code }
}

const OPENAI_TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  429: 'rate_limit_error',
}

/** Returns the headers that describe an exceeded budget. */
export const buildBudgetHeaders = ({
  holder,
  kind,
  limit,
  left,
  resets_in_seconds,
}: ExceededBudget): Header[] => [
  ['ai-budget', `${holder}.${kind}`],
  ['ai-budget-limit', String(limit)],
  ['ai-budget-remaining', String(left)],
  ['ai-budget-reset', String(resets_in_seconds)],
]

/**
 * Returns headers that let a page of an allowed origin read the response
 * (https://fetch.spec.whatwg.org/#http-cors-protocol).
 */
export function buildCorsHeaders(settings: Settings, request: EdgeRequest): readonly Header[] {
  if (settings.corsOrigins.size === 0) return []
  const origin = request.header('origin')
  if (!settings.corsOrigins.has(origin)) return [['vary', 'origin']]
  return [
    ['vary', 'origin'],
    ['access-control-allow-origin', origin],
    ['access-control-allow-credentials', 'true'],
    [
      'access-control-expose-headers',
      'x-request-id, etag, link, location, retry-after, content-disposition, age, ratelimit-limit, ' +
        'ratelimit-remaining, ratelimit-reset, idempotent-replayed, ai-budget, ai-budget-limit, ai-budget-remaining, ' +
        'ai-budget-reset',
    ],
  ]
}

/** Returns the additional headers of a preflight response. */
export function buildPreflightHeaders(allow: string): readonly Header[] {
  return [
    ['access-control-allow-methods', allow],
    [
      'access-control-allow-headers',
      'authorization, content-type, idempotency-key, last-event-id, prefer, if-none-match, x-request-id, ' +
        'traceparent, tracestate, x-stainless-lang, x-stainless-package-version, x-stainless-os, x-stainless-arch, ' +
        'x-stainless-runtime, x-stainless-runtime-version, x-stainless-retry-count, x-stainless-timeout, ' +
        'x-stainless-helper-method, openai-organization, openai-project',
    ],
    ['access-control-max-age', '600'],
  ]
}

/**
 * True if a page of another origin sent the request (https://www.w3.org/TR/fetch-metadata/). `Origin` decides if it is
 * present, and allowed origins do not count. Otherwise `Sec-Fetch-Site` decides, and another origin of the same site
 * counts only with `strict`.
 */
export function isCrossSite(settings: Settings, request: EdgeRequest, strict: boolean): boolean {
  const origin = request.header('origin')
  if (origin !== '') {
    if (settings.corsOrigins.has(origin)) return false
    return origin !== new URL(settings.publicBaseUrl).origin && hostOf(origin) !== request.header('host')
  }
  const site = request.header('sec-fetch-site')
  return site === 'cross-site' || (strict && site === 'same-site')
}

function hostOf(origin: string): string {
  try {
    return new URL(origin).host
  } catch {
    return ''
  }
}

const QUOTE_BYTE = 0x22
const BACKSLASH_BYTE = 0x5c
const SPACE_BYTE = 0x20

/**
 * Removes the whitespace that PostgreSQL adds to JSON, so that the result equals the output of JSON.stringify. This
 * takes about 2 ns per byte, so large data that appears in lists should be stored in compact form.
 */
export function compactJson(text: string): string {
  const bytes = Buffer.from(text)
  const { length } = bytes
  let to = 0
  let inString = false
  for (let from = 0; from < length; from++) {
    const byte = bytes[from]!
    if (byte <= SPACE_BYTE && !inString) continue
    bytes[to++] = byte
    if (byte === QUOTE_BYTE) inString = !inString
    else if (byte === BACKSLASH_BYTE) bytes[to++] = bytes[++from]!
  }
  return bytes.toString('utf8', 0, to)
}
