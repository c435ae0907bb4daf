import { networkOf } from '../../tasks/addresses.ts'
import type { Streams } from '../streams/sse.ts'
import type { Edge } from './context.ts'
import type { KeyRef } from './idempotency.ts'
import { invalid } from './input.ts'
import type { Entry } from './match.ts'
import type { RequestContext } from './request-context.ts'

/** A request after admission and input checks, as the responders receive it. */
export interface AdmittedRequest {
  readonly edge: Edge
  readonly streams: Streams
  readonly exchange: RequestContext
  readonly entry: Entry
  readonly input: never
  /**
   * Checks the caller again after a slow step and updates `exchange.caller`.
   * @throws the failure if the caller is no longer admitted.
   */
  readonly readmit: () => Promise<void>
  /** Returns the fingerprint, which every repetition under the same Idempotency-Key must have. */
  readonly fingerprint: () => Buffer
}

/** Returns the Idempotency-Key of a request; null if it has none or the route ignores it. */
export function idempotencyKeyOf(exchange: RequestContext, { area, route }: Entry): KeyRef | null {
  const key = route.sideEffect === true ? exchange.request.header('idempotency-key') : ''
  if (key === '') return null
  if (key.length > 255)
    throw invalid('header', 'idempotency-key', 'must have at most 255 characters', 'too_big')
  const { caller } = exchange
  // Callers without an account are identified by their network, as in rate limits.
  const subject = caller === null || caller.ownerId === null ? networkOf(exchange.address) : caller.id
  const scope = `${subject} ${route.method} ${exchange.request.path}`
  return { scope, key, invalidStatus: area.invalidStatus }
}
