import { networkKeyOf } from '../../../tasks/platform/addresses.ts'
import type { Streams } from '../../streams/sse.ts'
import type { Edge } from '../context.ts'
import type { KeyRef } from '../write/idempotency.ts'
import { failInvalidField } from './input.ts'
import type { RouteEntry } from './match.ts'
import type { RequestContext } from './request-context.ts'

/** A request after admission and input checks, as the responders receive it. */
export interface AdmittedRequest {
  readonly edge: Edge
  readonly streams: Streams
  readonly exchange: RequestContext
  readonly entry: RouteEntry
  readonly input: never
  /**
   * Checks the caller again after a slow step and updates `exchange.caller`.
   * @throws the failure of a caller who is no longer admitted.
   */
  readonly readmit: () => Promise<void>
  /** Returns the fingerprint of the request. Every repetition with its Idempotency-Key must have the same one. */
  readonly fingerprint: () => Buffer
}

/** Returns the Idempotency-Key of a request; null if it has none or the route ignores it. */
export function readIdempotencyKey(exchange: RequestContext, { area, route }: RouteEntry): KeyRef | null {
  const key = route.sideEffect === true ? exchange.request.header('idempotency-key') : ''
  if (key === '') return null
  if (key.length > 255)
    throw failInvalidField('header', 'idempotency-key', 'must have at most 255 characters', 'too_big')
  const { caller } = exchange
  // Callers without an account are identified by their network, as in rate limits.
  const subject = caller === null || caller.ownerId === null ? networkKeyOf(exchange.address) : caller.id
  const scope = `${subject} ${route.method} ${exchange.request.path}`
  return { scope, key, rules: area }
}
