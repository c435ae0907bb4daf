import { noRows, type Query, sql } from './db.ts'
import type { ReadStatement } from './reader.ts'
import { counted, TOTAL } from './totals.ts'

/** The append-only trail of what happened to accounts and organizations. */

export const AUDIT_KINDS = [
  'account.registered',
  'account.signed_in',
  'account.sign_in_failed',
  'account.locked',
  'account.signed_out',
  'account.updated',
  'account.verified',
  'account.password_changed',
  'account.password_reset_requested',
  'account.password_reset',
  'account.role_changed',
  'account.activated',
  'account.deactivated',
  'account.deleted',
  'session.ended',
  'session.replayed',
  'organization.created',
  'organization.updated',
  'organization.deleted',
  'organization.inherited',
  'organization.ownership_transferred',
  'member.added',
  'member.role_changed',
  'member.removed',
  'member.left',
  'invite.created',
  'invite.accepted',
  'invite.revoked',
] as const
export type AuditKind = (typeof AUDIT_KINDS)[number]

export interface AuditEvent {
  readonly kind: AuditKind
  /** Who did it; null when nobody was signed in. */
  readonly actorId: number | null
  /** Whom it was done to. */
  readonly accountId?: number | null
  readonly organizationId?: number | null
  /** Where the request came from; null for what the service did by itself. */
  readonly address: string | null
  readonly requestId: string | null
  readonly data?: Readonly<Record<string, unknown>>
}

/** Adds events, in order, in the transaction of the change that they record. */
export const appendAudit = (events: readonly AuditEvent[]): Query<unknown> =>
  sql.prepared('audit_append', noRows)`
    insert into audit_event (kind, actor_id, account_id, organization_id, address, request_id, data)
    select e ->> 'kind', (e ->> 'actorId')::int, (e ->> 'accountId')::int, (e ->> 'organizationId')::int,
      e ->> 'address', e ->> 'requestId', coalesce(e -> 'data', '{}')
    from jsonb_array_elements(${JSON.stringify(events)}::jsonb) with ordinality as given(e, n) order by n`

const MATCHING = `audit_event where ($3::text is null or kind = $3) and ($4::int is null or actor_id = $4 or account_id = $4)
  and ($5::int is null or organization_id = $5)`

/** A page, newest first, of the events of a kind, an account (as actor or subject) and an organization; null: any. */
export const readAudit: ReadStatement<
  [
    pageSize: number,
    offset: number,
    kind: string | null,
    account: number | null,
    organization: number | null,
    page: number,
  ]
> = {
  name: 'audit',
  text: `
    select json_build_object('events', coalesce((select json_agg(e) from (
        select json_build_object('id', id, 'at', iso(at), 'kind', kind, 'actor_id', actor_id, 'account_id', account_id,
          'organization_id', organization_id, 'address', address, 'request_id', request_id, 'data', data) as e
        from ${MATCHING} order by id desc limit $1::int offset $2::int) page), '[]'),
      ${TOTAL}, 'page', $6::int, 'page_size', $1::int)::text from ${counted(MATCHING)} counted`,
}
