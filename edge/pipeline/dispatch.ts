import { mapShortage } from '../../sql/error-mapping.ts'
import { Failure, fail } from '../../sql/errors.ts'
import type { Reads } from '../../sql/reads/slow-reads.ts'
import { isServedHost } from '../../tasks/platform/addresses.ts'
import type { Log } from '../../tasks/platform/log.ts'
import type { Settings } from '../../tasks/platform/settings/settings.ts'
import { runWithOrigin, traceIdOf } from '../../tasks/platform/telemetry/tracing.ts'
import {
  buildBudgetHeaders,
  buildPreflightHeaders,
  formatFailure,
  type Header,
  isCrossSite,
} from '../http/reply.ts'
import type { EdgeRequest, Responder } from '../http/server.ts'
import type { Streams } from '../streams/sse.ts'
import type { Auth } from './access/access.ts'
import { ANONYMOUS_CALLER, type Caller, findRequiredRole, findRoleFailure } from './access/auth.ts'
import { buildChallenge, failLostCredential, isUnauthenticated } from './access/challenges.ts'
import type { ApiKey } from './access/credentials.ts'
import { failLimited } from './access/limits.ts'
import { failMissingScope } from './access/scopes.ts'
import { checkRefusal } from './answer/refusals.ts'
import { respondWithHandle, respondWithJob, respondWithRaw, respondWithStream } from './answer/responders.ts'
import { statusOf } from './answer/statuses.ts'
import type { Edge } from './context.ts'
import type { AdmittedRequest } from './request/admitted-request.ts'
import { findMaxJsonBytes, parseBody, parsePart, parseQuery } from './request/input.ts'
import { createMatcher, type Match, type RouteEntry } from './request/match.ts'
import { RequestContext } from './request/request-context.ts'
import { type AnyRoute, type Area, isJobBacked } from './route.ts'
import { answerFailure, computeFingerprint } from './write/idempotency.ts'

// Paths that accept any Host header, because probes and scrapers send the address of the process.
const PROBE_PATHS: ReadonlySet<string> = new Set(['/health', '/ready', '/metrics'])

/** Serves a request: finds the route, admits the caller, reads the input and runs the handler. It never rejects. */
export type Dispatch = (request: EdgeRequest, responder: Responder) => Promise<void>

export function createDispatch(edge: Edge, areas: readonly Area[], streams: Streams): Dispatch {
  const matcher = createMatcher(areas)
  const access = createAccessLog(edge.log, edge.settings.accessLog)
  const served = edge.settings.servedHosts

  const serve = async (exchange: RequestContext): Promise<void> => {
    const { request } = exchange
    if (request.isMisframed) throw fail('request.malformed', { reason: 'its framing is ambiguous' })
    if (served !== null && !isServedHost(served, request.header('host')) && !PROBE_PATHS.has(request.path))
      throw fail('request.misdirected')
    const match = matcher.find(request.path)
    if (match === undefined)
      throw fail('request.malformed', { reason: 'the path is not valid percent-encoding' })
    if (match === null) throw fail('route.missing')
    const entry = match.entries.get(request.method === 'HEAD' ? 'GET' : request.method)
    if (entry === undefined) return answerMethod(exchange, [...match.entries.keys()])
    exchange.entry = entry
    const admitted = admitCaller(edge, exchange, entry, match.params)
    exchange.caller = admitted instanceof Promise ? await admitted : admitted
    if (edge.keyLimits !== null && exchange.caller?.key) {
      const allowance = edge.keyLimits.count(exchange.caller.key.id)
      exchange.allowance = allowance instanceof Promise ? await allowance : allowance
      if (exchange.allowance.isExceeded) throw failLimited(exchange.allowance.resetMs)
    }
    const { route } = entry
    if (route.limit !== undefined) await edge.limits.count(route.limit, exchange.address, exchange.caller)
    const params = parsePart(route.params, 'path', match.params)
    const query = parseQuery(entry, request.query)
    const readmit = (): Promise<void> => readmitCaller(edge, exchange, entry, match.params)
    const body = hasParsedBody(route) ? await readBody(edge, request, route, readmit) : null
    const input = buildInput(edge, exchange, route, { params, query, body: body?.value })
    const fingerprint = (): Buffer =>
      computeFingerprint(edge.keys, request.method, request.path, request.query, body?.bytes ?? '')
    await chooseResponder(route)({ edge, streams, exchange, entry, input, readmit, fingerprint })
  }

  const answer = async (exchange: RequestContext): Promise<void> => {
    try {
      await serve(exchange)
    } catch (error) {
      await sendFailure(edge, exchange, error)
    }
    exchange.end()
    const { entry, status, request } = exchange
    edge.metrics.recordResponse(entry, request.method, status, exchange.elapsedSeconds())
    access.write(exchange)
  }

  const { tracing } = edge
  const needsAsyncContext = tracing !== null || edge.settings.slowQueryMs > 0
  return (request, responder) => {
    const exchange = new RequestContext(request, responder, edge.settings, access.logsEveryRequest)
    if (tracing !== null) exchange.startSpan(tracing)
    return needsAsyncContext ? runWithOrigin(exchange, answer) : answer(exchange)
  }
}

function hasParsedBody(route: AnyRoute): boolean {
  return (
    route.body !== undefined &&
    (route.bodyType === undefined || route.bodyType === 'json' || route.bodyType === 'form')
  )
}

async function readBody(
  edge: Edge,
  request: EdgeRequest,
  route: AnyRoute,
  readmit: AdmittedRequest['readmit'],
) {
  const body = await parseBody(route, request, findMaxJsonBytes(edge.settings, route))
  await readmit()
  return body
}

/**
 * Builds the input of a handler. The input is typed `never`, because only the route's schemas, which have parsed
 * `read`, define its type.
 */
function buildInput(
  edge: Edge,
  exchange: RequestContext,
  route: AnyRoute,
  read: { readonly params: unknown; readonly query: unknown; readonly body: unknown },
): never {
  const { caller, request, requestId } = exchange
  const reader = chooseReader(edge, exchange, route)
  return { ...read, caller, edge, reader, request, requestId, exchange } as never
}

function chooseResponder(route: AnyRoute): (admitted: AdmittedRequest) => Promise<void> {
  if (route.handle !== undefined) return respondWithHandle
  if (isJobBacked(route)) return respondWithJob
  return route.stream !== undefined ? respondWithStream : respondWithRaw
}

/**
 * Returns the caller; null if a public route has none.
 * @throws the failure of a caller that the route does not admit.
 */
function admitCaller(
  edge: Edge,
  exchange: RequestContext,
  entry: RouteEntry,
  params: Match['params'],
): Caller | null | Promise<Caller | null> {
  const { request } = exchange
  const { area, route } = entry
  const auth = route.auth ?? area.auth
  if (
    needsOriginCheck(route, auth, request) &&
    isUnsafe(request, route) &&
    isCrossSite(edge.settings, request, route.costsMoney === true)
  )
    throw fail('request.cross_site')
  return admitIdentified(edge, exchange, entry, params, () => edge.authenticator.authenticate(request))
}

/**
 * Checks the caller again after the body has arrived. While a client sends it slowly, the session, key or role may
 * change.
 * @throws the failure of a caller that the route no longer admits.
 */
async function readmitCaller(
  edge: Edge,
  exchange: RequestContext,
  entry: RouteEntry,
  params: Match['params'],
): Promise<void> {
  const { caller } = exchange
  if (caller !== null)
    exchange.caller = await admitIdentified(edge, exchange, entry, params, () =>
      edge.authenticator.renew(caller),
    )
}

/**
 * Applies the route's access rule to the caller that `identify` finds.
 * @throws the failure of a caller that the rule does not admit.
 */
function admitIdentified(
  edge: Edge,
  exchange: RequestContext,
  entry: RouteEntry,
  params: Match['params'],
  identify: Identify,
): Caller | null | Promise<Caller | null> {
  const { area, route } = entry
  const auth = route.auth ?? area.auth
  if (auth === 'public') return identifyOptionally(exchange, identify, entry, params)
  const permit = (caller: Caller | null): Caller => {
    const isOpen = (auth === 'open' || auth === 'operator') && edge.settings.openAreas.has(area.name)
    if (caller === null) {
      if (!isOpen) throw fail('auth.required')
      return ANONYMOUS_CALLER
    }
    const outOfScope = caller.key === null ? null : findKeyFailure(caller.key, entry, params)
    if (outOfScope !== null) throw outOfScope
    const role = isOpen ? null : findRequiredRole(auth, edge.settings)
    const refused = role === null ? null : findRoleFailure(caller, role)
    if (refused !== null) throw refused
    return caller
  }
  const caller = identify()
  return caller instanceof Promise ? caller.then(permit) : permit(caller)
}

type Identify = () => Caller | null | Promise<Caller | null>

/** True if a cross-site request could use or set a browser's cookies, or spend money. Such requests are refused. */
function needsOriginCheck(route: AnyRoute, auth: Auth, request: EdgeRequest): boolean {
  if (route.signsIn === true) return true
  if (route.costsMoney === true) return request.header('authorization') === ''
  if (auth === 'public' && route.cookieAuth !== true) return false
  return request.header('authorization') === '' && request.header('cookie') !== ''
}

/** Returns the failure if an API key does not give access to a route; otherwise null. */
function findKeyFailure(
  key: ApiKey,
  { area, route, scopes }: RouteEntry,
  params: Match['params'],
): Failure | null {
  if (route.needsSession === true) return fail('auth.session')
  if (!scopes.some((scope) => key.scopes.has(scope))) return failMissingScope(scopes[0]!)
  if (key.organizationId === null || route.allowsOrganizationKeys === true) return null
  const isOwn = area.name === 'organizations' && Number(params.org_id) === key.organizationId
  return isOwn ? null : fail('auth.key_organization')
}

/** Returns the caller of a public route; null without a valid credential, or if an API key lacks the scope. */
async function identifyOptionally(
  exchange: RequestContext,
  identify: Identify,
  entry: RouteEntry,
  params: Match['params'],
): Promise<Caller | null> {
  const { route } = entry
  try {
    const caller = await identify()
    return caller?.key && findKeyFailure(caller.key, entry, params) !== null ? null : caller
  } catch (error) {
    if (isUnauthenticated(error)) {
      exchange.credentialFailure = error
      return null
    }
    // Routes that need no cookie continue without a caller. For example, /health works while the database is down.
    if (error instanceof Failure && statusOf(error.code) === 503 && route.cookieAuth !== true) return null
    throw error
  }
}

function isUnsafe({ method }: EdgeRequest, route: AnyRoute): boolean {
  // A GET that adds a job or costs money is unsafe.
  if (method === 'GET' || method === 'HEAD') return isJobBacked(route) || route.costsMoney === true
  return method !== 'OPTIONS'
}

/** Answers OPTIONS and unsupported methods. */
function answerMethod(exchange: RequestContext, methods: readonly string[]): Promise<void> | void {
  const allow = [...methods, ...(methods.includes('GET') ? ['HEAD'] : []), 'OPTIONS'].join(', ')
  if (exchange.request.method === 'OPTIONS')
    return exchange.sendEmpty(204, [['allow', allow], ...buildPreflightHeaders(allow)])
  return exchange.sendJson(405, [['allow', allow]], formatFailure(fail('route.method', { allow })))
}

// Most areas use this status, so it applies before a route is found.
const DEFAULT_AREA = { invalidStatus: 422, errorFormat: 'plain' } as const

/**
 * Converts an error to the failure to report. Handlers report `auth.required` if the caller's account is gone, because
 * they do not know the kind of credential.
 */
function toFailure(error: unknown, { caller, requestId }: RequestContext): Failure {
  const failure = mapShortage(error)
  if (!(failure instanceof Failure)) return fail('internal', { requestId })
  return failure.code === 'auth.required' && caller !== null ? failLostCredential(caller) : failure
}

async function sendFailure(edge: Edge, exchange: RequestContext, error: unknown): Promise<void> {
  const failure = toFailure(error, exchange)
  const { entry, responder } = exchange
  if (entry !== null && !responder.isDone) checkRefusal(edge, entry as RouteEntry, failure.code)
  const { status, headers: given, body } = answerFailure(entry?.area ?? DEFAULT_AREA, failure)
  edge.metrics.countRefusal(failure.code)
  // The health check logs an outage once instead of per request, and the access log has the refused requests.
  const isReportedOutage =
    failure.cause === undefined && ['database.down', 'database.busy'].includes(failure.code)
  if (status >= 500 && !isReportedOutage) {
    edge.log.error({ err: error, requestId: exchange.requestId, route: entry?.pattern }, 'A request failed')
  }
  const headers: Header[] = [...given]
  const challenge = buildChallenge(failure)
  if (challenge !== null) headers.push(['www-authenticate', challenge])
  const retryAfter = failure.retryAfter ?? (status === 503 ? 1 : undefined)
  if (retryAfter !== undefined) headers.push(['retry-after', String(retryAfter)])
  if (failure.budget !== undefined) headers.push(...buildBudgetHeaders(failure.budget))
  if (responder.isDone) return
  await exchange.sendJson(status, headers, body)
}

interface AccessLog {
  /** True if every request gets a log line. */
  readonly logsEveryRequest: boolean
  /** Logs a request after its answer, or a stream when it opens. */
  write(exchange: RequestContext): void
}

function createAccessLog(log: Log, which: Settings['accessLog']): AccessLog {
  if (which === 'none' || !log.isLevelEnabled('info')) return { logsEveryRequest: false, write: () => {} }
  // These lines contain no secrets, and redaction would take 70 of the 76 µs per line.
  const unredacted = log.child({}, { redact: [] })
  const write = (exchange: RequestContext): void => {
    const { request, responder, status, requestId, entry, caller, traceParent } = exchange
    // Status 0: the client disconnected before the answer.
    if (which === 'errors' && status > 0 && status < 400) return
    const line = {
      requestId,
      method: request.method,
      route: entry?.pattern ?? null,
      path: entry?.route.hasSecretPath === true ? entry.pattern : request.path,
      status,
      ms: Math.round(exchange.elapsedSeconds() * 1e4) / 10,
      bytes: responder.sentBytes,
      account: caller?.ownerId ?? null,
      ...(caller?.key && { key: caller.key.id }),
      address: exchange.address,
    }
    const traced = traceParent === null ? line : { ...line, traceId: traceIdOf(traceParent) }
    unredacted.info(traced, 'Answered')
  }
  return { logsEveryRequest: which === 'all', write }
}

// Owner id that stands for all callers without an account.
const ANONYMOUS_OWNER_ID = 0

/** Chooses the reader that a route declares. */
function chooseReader(edge: Edge, exchange: RequestContext, route: AnyRoute): Reads {
  const { reader, slowReads, replica } = edge
  const caller = exchange.caller?.ownerId ?? ANONYMOUS_OWNER_ID
  if (route.reads === undefined) return reader
  if (replica === null || route.mayLag !== true) return slowReads.readsFor(caller, route.reads)
  return replica.readsFor(caller, route.reads, (seconds) => {
    exchange.ageSeconds = seconds
  })
}
