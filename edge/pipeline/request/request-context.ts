import { randomBytes } from 'node:crypto'
import type { Failure } from '../../../sql/errors.ts'
import type { Settings } from '../../../tasks/platform/settings/settings.ts'
import {
  type Origin,
  parseTraceParent,
  type Span,
  type Tracing,
} from '../../../tasks/platform/telemetry/tracing.ts'
import {
  buildCorsHeaders,
  type FailureRules,
  type Header,
  type StoredReply,
  sendJson,
} from '../../http/reply.ts'
import type { EdgeRequest, ReplyHead, Responder } from '../../http/server.ts'
import type { Caller } from '../access/auth.ts'
import { readClientAddress, readClientLocation } from '../access/auth.ts'
import type { Allowance } from '../access/key-limits.ts'

// Clients may choose the request id, but only from characters that are safe in log lines and headers.
const REQUEST_ID = /^[A-Za-z0-9._:-]{1,64}$/
const PROCESS_PREFIX = randomBytes(6).toString('base64url')
let counter = 0
// The methods that OpenTelemetry's HTTP conventions list.
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'CONNECT', 'TRACE'])

/** The part of a matched route that every answer needs. */
export interface MatchedRoute {
  /** The pattern with its prefix. */
  readonly pattern: string
  readonly area: FailureRules
  readonly route: {
    readonly method: string
    readonly hasCredentials?: boolean | undefined
    readonly hasSecretPath?: boolean | undefined
  }
}

/** A request in progress. It sends answers with the common headers. */
export class RequestContext implements Origin {
  readonly request: EdgeRequest
  readonly responder: Responder
  readonly requestId: string
  readonly startedAt = performance.now()
  readonly settings: Settings
  entry: MatchedRoute | null = null
  caller: Caller | null = null
  /** The failure of an invalid credential on a public route; null if the credential is valid or absent. */
  credentialFailure: Failure | null = null
  /** Age in seconds of what a replica has read; null if the primary has read it. */
  ageSeconds: number | null = null
  /** Requests that the API key has left; null without a key or a limit. */
  allowance: Allowance | null = null
  /** Status of the answer; 0 before the answer. */
  status = 0
  private span: Span | null = null
  // The edge calls no providers, so it has nothing to record.
  readonly record = null
  private hasEnded = false

  /** @param isLogged true if the access log has a line for every request. */
  constructor(request: EdgeRequest, responder: Responder, settings: Settings, isLogged: boolean) {
    this.request = request
    this.responder = responder
    this.settings = settings
    // uWS can't read the address after a disconnect or an answer, but log and audit trail need it for every write.
    if (request.method !== 'GET' || isLogged) void request.address
    const given = request.header('x-request-id')
    this.requestId =
      given !== '' && REQUEST_ID.test(given) ? given : `${PROCESS_PREFIX}-${(++counter).toString(36)}`
  }

  /** Builds the head of an answer, with the common headers. */
  buildHead(status: number, headers: readonly Header[] = []): ReplyHead {
    this.status = status
    // The access log needs the address after the answer, when uWS can no longer read it.
    if (status >= 400) void this.request.address
    const all: Header[] = [
      ...headers,
      ['x-request-id', this.requestId],
      ...buildCorsHeaders(this.settings, this.request),
    ]
    if (this.allowance !== null) all.push(...this.allowance.headers())
    if (this.ageSeconds !== null) all.push(['age', String(this.ageSeconds)])
    if (this.entry?.route.hasCredentials === true) all.push(['cache-control', 'no-store'])
    return { status, headers: all }
  }

  sendJson(status: number, headers: readonly Header[], text: string): Promise<void> | void {
    const head = this.buildHead(status, headers)
    return sendJson(this.request, this.responder, status, head.headers, text)
  }

  sendEmpty(status: number, headers: readonly Header[] = []): void {
    this.responder.send(this.buildHead(status, headers))
  }

  sendStored(answer: StoredReply): Promise<void> | void {
    if (answer.status === 204) return this.sendEmpty(204, answer.headers)
    return this.sendJson(answer.status, answer.headers, answer.body)
  }

  get address(): string {
    return readClientAddress(this.settings, this.request)
  }

  get location(): string | null {
    return readClientLocation(this.settings, this.request)
  }

  get traceParent(): string | null {
    return this.span?.traceParent ?? null
  }

  logFields(): object | null {
    if (this.hasEnded) return null
    const { request, entry, requestId } = this
    return { route: `${request.method} ${entry?.pattern ?? request.path}`, requestId }
  }

  /** Starts the request's span, in the caller's trace if `traceparent` names one. */
  startSpan(tracing: Tracing): void {
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

  /** Ends the request and its span, even if its stream is still open. */
  end(): void {
    this.hasEnded = true
    if (this.span === null) return
    const { entry, request, status } = this
    const hiddenPath = entry?.route.hasSecretPath === true ? { 'url.path': entry.pattern } : {}
    this.span.end({
      ...(entry !== null && { name: `${request.method} ${entry.pattern}` }),
      // Status 0: the client disconnected before the answer.
      attributes: {
        ...hiddenPath,
        'http.route': entry?.pattern,
        'http.response.status_code': status === 0 ? null : status,
      },
      error: status >= 500 ? String(status) : null,
    })
  }

  /** Returns the seconds since the request arrived. */
  elapsedSeconds(): number {
    return (performance.now() - this.startedAt) / 1000
  }
}
