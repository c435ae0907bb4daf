import { type AuditEvent, type AuditKind, appendAudit } from '../../sql/audit.ts'
import type { Query } from '../../sql/db.ts'
import type { Caller } from './auth.ts'
import type { RequestContext } from './request-context.ts'

/** What an event is about, and what is worth knowing of it. Never a secret. */
type About = Pick<AuditEvent, 'accountId' | 'organizationId' | 'data'> & { readonly actorId?: number | null }

/** The request that an event is of. */
export interface From {
  readonly caller: Caller | null
  readonly requestId: string
  readonly exchange: RequestContext
}

/** The event of a request; the actor is the caller unless the event says otherwise, and an API key is named. */
export function eventOf({ caller, requestId, exchange }: From, kind: AuditKind, about: About): AuditEvent {
  const data = caller?.key ? { ...about.data, api_key: caller.key.id } : about.data
  const made = {
    actorId: caller?.ownerId ?? null,
    ...about,
    kind,
    address: exchange.address || null,
    requestId,
  }
  return data === undefined ? made : { ...made, data }
}

/** Adds one event of a request to the trail, in the transaction of what it tells of. */
export function audit(from: From, kind: AuditKind, about: About): Query<unknown> {
  return appendAudit([eventOf(from, kind, about)])
}
