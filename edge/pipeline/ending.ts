import { networkOf } from '../../tasks/addresses.ts'
import type { Streams } from '../streams/sse.ts'
import type { Edge } from './context.ts'
import type { KeyRef } from './idempotency.ts'
import { invalid } from './input.ts'
import type { Entry } from './match.ts'
import type { RequestContext } from './request-context.ts'

/** The input of a route's ending: the request, admitted and read. */
export interface Ending {
  readonly edge: Edge
  readonly streams: Streams
  readonly exchange: RequestContext
  readonly entry: Entry
  readonly input: never
  /** Admits the caller once more after what took its time: `exchange` then has them as they are by now. @throws the refusal. */
  readonly readmit: () => Promise<void>
  /** What a repetition under an Idempotency-Key must equal. */
  readonly fingerprint: () => Buffer
}

/** The key of a request, null when it has none or the route takes none. */
export function keyOf(exchange: RequestContext, { area, route }: Entry): KeyRef | null {
  const key = route.sideEffect === true ? exchange.request.header('idempotency-key') : ''
  if (key === '') return null
  if (key.length > 255)
    throw invalid('header', 'idempotency-key', 'must have at most 255 characters', 'too_big')
  const { caller } = exchange
  // Without an account it is somebody of that address, as a limit counts them.
  const who = caller === null || caller.ownerId === null ? networkOf(exchange.address) : caller.id
  const scope = `${who} ${route.method} ${exchange.request.path}`
  return { scope, key, invalidStatus: area.invalidStatus }
}
