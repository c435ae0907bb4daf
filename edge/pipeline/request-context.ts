import { randomBytes } from 'node:crypto'
import type { Settings } from '../../tasks/settings.ts'
import { type Origin, parseTraceParent, type Span, type Tracing } from '../../tasks/telemetry/tracing.ts'
import { corsHeaders, type Header, type KeptAnswer, sendJson } from '../http/reply.ts'
import type { EdgeRequest, ReplyHead, Responder } from '../http/server.ts'
import type { Caller } from './auth.ts'
import { addressOf, placeOf } from './client-place.ts'
import type { Allowance } from './key-limits.ts'
import type { WrittenPosition } from './positions.ts'

// A client may choose the request id, but nothing that could break a log line or a header.
const REQUEST_ID = /^[A-Za-z0-9._:-]{1,64}$/
const PREFIX = randomBytes(6).toString('base64url')
let counter = 0
// Those that OpenTelemetry's conventions for HTTP name.
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'CONNECT', 'TRACE'])

/** What is needed of the matched route, whatever the outcome. */
export interface Found {
  /** The pattern with its prefix. */
  readonly pattern: string
  readonly area: { readonly invalidStatus: 422 | 400 }
  readonly route: { readonly method: string; readonly credentials?: boolean | undefined }
}

/** One request in progress, and the ways to answer it, which add the common headers. */
export class RequestContext implements Origin {
  readonly request: EdgeRequest
  readonly responder: Responder
  readonly requestId: string
  readonly startedAt = performance.now()
  readonly settings: Settings
  entry: Found | null = null
  caller: Caller | null = null
  /** What it has written, if it may write and there is a replica that has to follow. */
  written: WrittenPosition | null = null
  /** What its API key may still request, where that is limited. */
  allowance: Allowance | null = null
  /** Status of the answer, once there is one. */
  status = 0
  private span: Span | null = null
  // An edge calls no provider.
  readonly record = null
  private hasEnded = false

  /** @param isLogged whether its line will be in the access log, whatever the answer. */
  constructor(request: EdgeRequest, responder: Responder, settings: Settings, isLogged: boolean) {
    this.request = request
    this.responder = responder
    this.settings = settings
    // The address can't be read after a disconnect or an answer; the log and the audit trail need it for every write.
    if (request.method !== 'GET' || isLogged) void request.address
    const given = request.header('x-request-id')
    this.requestId = given !== '' && REQUEST_ID.test(given) ? given : `${PREFIX}-${(++counter).toString(36)}`
  }

  /** The head of an answer, with the headers that all have. */
  head(status: number, headers: readonly Header[] = []): ReplyHead {
    this.status = status
    // The log line is written after the answer, for refusals, too.
    if (status >= 400) void this.request.address
    const all: Header[] = [
      ...headers,
      ['x-request-id', this.requestId],
      ...corsHeaders(this.settings, this.request),
    ]
    if (this.allowance !== null) all.push(...this.allowance.headers())
    if (this.written !== null) all.push(...this.written.headers())
    if (this.entry?.route.credentials === true) all.push(['cache-control', 'no-store'])
    return { status, headers: all }
  }

  json(status: number, headers: readonly Header[], text: string): Promise<void> | void {
    const head = this.head(status, headers)
    return sendJson(this.request, this.responder, status, head.headers, text)
  }

  empty(status: number, headers: readonly Header[] = []): void {
    this.responder.send(this.head(status, headers))
  }

  kept(answer: KeptAnswer): Promise<void> | void {
    if (answer.status === 204) return this.empty(204, answer.headers)
    return this.json(answer.status, answer.headers, answer.body)
  }

  get address(): string {
    return addressOf(this.settings, this.request)
  }

  get place(): string | null {
    return placeOf(this.settings, this.request)
  }

  get traceParent(): string | null {
    return this.span?.traceParent ?? null
  }

  about(): object | null {
    if (this.hasEnded) return null
    const { request, entry, requestId } = this
    return { route: `${request.method} ${entry?.pattern ?? request.path}`, requestId }
  }

  /** Begins its span, in the trace of the caller if that names one. */
  trace(tracing: Tracing): void {
    const { request, requestId, settings } = this
    const { method, path } = request
    const parent = request.header('traceparent')
    const isKnown = METHODS.has(method)
    const [scheme] = settings.publicBaseUrl.split(':')
    this.span = tracing.start(
      isKnown ? method : 'HTTP',
      'server',
      parent !== '' && parseTraceParent(parent) !== null ? parent : null,
      {
        'http.request.method': isKnown ? method : '_OTHER',
        'url.path': path,
        'url.scheme': scheme,
        'request.id': requestId,
      },
    )
  }

  /** Answered; what goes on now, such as a stream, is not of this request any more. */
  end(): void {
    this.hasEnded = true
    if (this.span === null) return
    const { entry, request, status } = this
    this.span.end({
      ...(entry !== null && { name: `${request.method} ${entry.pattern}` }),
      // No status: the client disconnected before the answer.
      attributes: { 'http.route': entry?.pattern, 'http.response.status_code': status === 0 ? null : status },
      error: status >= 500 ? String(status) : null,
    })
  }

  /** Seconds since the request came. */
  elapsed(): number {
    return (performance.now() - this.startedAt) / 1000
  }
}
