import type { Reads } from '../../../sql/reads/slow-reads.ts'
import type { Edge } from '../context.ts'
import type { AnyRoute } from '../route.ts'
import type { RequestContext } from './request-context.ts'

// Owner id that stands for all callers without an account.
const ANONYMOUS_OWNER_ID = 0

/** Chooses the reader that a route declares. */
export function chooseReader(edge: Edge, exchange: RequestContext, route: AnyRoute): Reads {
  const { reader, slowReads, replica } = edge
  const caller = exchange.caller?.ownerId ?? ANONYMOUS_OWNER_ID
  if (route.reads === undefined)
    return replica !== null && route.reportsWrites === true ? replica.wal.trackReads(reader) : reader
  // A stream continues its first read with notifications from the primary, so it must read there, too.
  if (replica === null || route.stream !== undefined || route.readsDecideAccess === true)
    return slowReads.readsFor(caller, route.reads)
  return replica.reads.readsFor(caller, route.reads, replica.positions.requiredPosition(exchange))
}
