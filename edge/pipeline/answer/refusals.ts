import type { ErrorCode } from '../../../sql/errors.ts'
import type { Settings } from '../../../tasks/platform/settings/settings.ts'
import { findRequiredRole } from '../access/auth.ts'
import { CREDENTIAL_ERRORS } from '../access/challenges.ts'
import type { Edge } from '../context.ts'
import { JobLinksQuery } from '../request/input.ts'
import type { RouteEntry } from '../request/match.ts'
import { type AnyRoute, type Area, isJobBacked } from '../route.ts'
import { statusOf } from './statuses.ts'

/** Message of the log line about an error that a route does not declare. */
export const UNDECLARED_MESSAGE = 'The route does not declare this error'

/** Returns the errors of a route: those that it lists, and those that its declaration implies. */
export function listRefusals(area: Area, route: AnyRoute, settings: Settings): ReadonlySet<ErrorCode> {
  const auth = route.auth ?? area.auth
  const codes = new Set<ErrorCode>(route.errors)
  if (auth !== 'public' || codes.has('auth.required')) for (const code of CREDENTIAL_ERRORS) codes.add(code)
  if (auth !== 'public') codes.add(route.needsSession ? 'auth.session' : 'auth.scope')
  if (auth !== 'public' && !route.needsSession) codes.add('auth.key_organization')
  if (auth !== 'public' && settings.apiKeyRate !== null) codes.add('request.limited')
  if (route.costsMoney) codes.add('request.cross_site')
  if ((auth !== 'public' || route.signsIn) && (route.method !== 'get' || isJobBacked(route)))
    codes.add('request.cross_site')
  if (route.stream !== undefined || route.follow !== undefined) codes.add('stream.limited')
  if (route.limit !== undefined) codes.add('request.limited')
  if (route.alsoAnswers?.[206] !== undefined) codes.add('request.range')
  if (findRequiredRole(auth, settings) !== null) {
    codes.add('auth.forbidden')
    if (settings.requireAdminTotp) codes.add('auth.admin_factor')
  }
  if (!area.allowsAnyQuery || (route.params ?? route.query ?? route.body) !== undefined)
    codes.add('request.invalid')
  if (route.body !== undefined)
    for (const code of ['request.malformed', 'request.media_type', 'request.too_large'] as const)
      codes.add(code)
  if (route.sideEffect)
    for (const code of ['idempotency.mismatch', 'idempotency.running'] as const) codes.add(code)
  if (route.sideEffect && isJobBacked(route)) codes.add('job.missing')
  if (isJobBacked(route))
    for (const code of ['job.cancelled', 'quota.waiting_jobs', 'internal'] as const) codes.add(code)
  if (takesLinks(route))
    for (const code of ['job.missing', 'job.joined', 'job.dependency_failed'] as const) codes.add(code)
  if (isJobBacked(route) && !route.alwaysWaits)
    for (const code of ['request.invalid', 'webhook.no_account'] as const) codes.add(code)
  return codes
}

/**
 * Logs a refusal that the route does not declare, except in production. Codes of 500 and above come from any layer or
 * provider, so no route lists them.
 */
export function checkRefusal(
  { settings, log }: Pick<Edge, 'settings' | 'log'>,
  { area, route, pattern }: RouteEntry,
  code: ErrorCode,
): void {
  if (!settings.validateSchemas || statusOf(code) >= 500) return
  if (!listRefusals(area, route, settings).has(code))
    log.error({ route: `${route.method} ${pattern}`, code }, UNDECLARED_MESSAGE)
}

/** True if requests may name jobs to wait for. */
const takesLinks = (route: AnyRoute): boolean =>
  (isJobBacked(route) && route.alwaysWaits !== true) || route.query === JobLinksQuery
