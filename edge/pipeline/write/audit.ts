import { type AuditEvent, type AuditKind, appendAudit } from '../../../sql/audit/audit.ts'
import type { Query } from '../../../sql/db.ts'
import type { Caller } from '../access/auth.ts'
import type { RequestContext } from '../request/request-context.ts'

/** The subject and details of an event, which never contain a secret. */
type EventDetails = Pick<AuditEvent, 'accountId' | 'organizationId' | 'data'> & {
  readonly actorId?: number | null
}

/** The request that caused an event. */
export interface EventRequest {
  readonly caller: Caller | null
  readonly requestId: string
  readonly exchange: RequestContext
}

/** Builds the audit event of a request. The caller is the default actor, and `data` names the caller's API key. */
export function buildAuditEvent(
  { caller, requestId, exchange }: EventRequest,
  kind: AuditKind,
  about: EventDetails,
): AuditEvent {
  const data = caller?.key ? { ...about.data, api_key: caller.key.id } : about.data
  const event = {
    actorId: caller?.ownerId ?? null,
    ...about,
    kind,
    address: exchange.address || null,
    requestId,
  }
  return data === undefined ? event : { ...event, data }
}

/**
 * Returns the query that adds an event to the audit trail. Run it in the transaction of the change that the event
 * records.
 */
export function appendAuditEvent(from: EventRequest, kind: AuditKind, about: EventDetails): Query<unknown> {
  return appendAudit([buildAuditEvent(from, kind, about)])
}
