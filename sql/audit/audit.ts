import { noRows, type Query, sql } from '../db.ts'
import {
  buildListText,
  buildTimeSpanCondition,
  mapOrders,
  type PageValues,
  pairConditions,
} from '../reads/lists.ts'
import type { ReadStatement } from '../reads/reader.ts'

/** The append-only audit trail of accounts, organizations, payments and admin actions. */

export const AUDIT_KINDS = [
  'account.registered',
  'account.imported',
  'account.signed_in',
  'account.sign_in_failed',
  'account.totp_asked',
  'account.locked',
  'account.signed_out',
  'account.updated',
  'account.verified',
  'account.password_changed',
  'account.password_reset_requested',
  'account.password_reset',
  'account.magic_link_requested',
  'account.email_change_requested',
  'account.email_change_confirmed',
  'account.email_change_refused',
  'account.email_change_cancelled',
  'account.email_changed',
  'account.role_changed',
  'account.quotas_changed',
  'account.budget_changed',
  'account.activated',
  'account.deactivated',
  'account.deletion_requested',
  'account.deletion_cancelled',
  'account.deleted',
  'account.deletion_forced',
  'account.totp_enabled',
  'account.totp_disabled',
  'account.recovery_codes_renewed',
  'identity.linked',
  'identity.unlinked',
  'passkey.added',
  'passkey.renamed',
  'passkey.deleted',
  'session.ended',
  'session.replayed',
  'key.created',
  'key.changed',
  'key.deleted',
  'webhook.created',
  'webhook.updated',
  'webhook.deleted',
  'webhook.secret_rolled',
  'suppression.lifted',
  'template.created',
  'template.updated',
  'template.deleted',
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
  'invite.resent',
  'invite.role_changed',
  'invite.accepted',
  'invite.revoked',
  'payment.checkout_requested',
  'payment.customer_cleared',
  'payment.portal_requested',
  'payment.refund_requested',
  'subscription.cancel_requested',
  'subscription.plan_change_requested',
  'subscription.resume_requested',
  'job.bulk',
  'queue.paused',
  'queue.resumed',
  'queue.limited',
  'worker.drained',
  'worker.resumed',
  'schedule.created',
  'schedule.updated',
  'schedule.deleted',
  'schedule.paused',
  'schedule.resumed',
  'schedule.run',
  'worker_queue.created',
  'worker_queue.updated',
  'worker_queue.deleted',
  'worker_queue.task_declared',
  'worker_queue.task_removed',
] as const
export type AuditKind = (typeof AUDIT_KINDS)[number]

export interface AuditEvent {
  readonly kind: AuditKind
  /** Account that acted; null without a signed-in caller. */
  readonly actorId: number | null
  /** Account that the action affected. */
  readonly accountId?: number | null
  readonly organizationId?: number | null
  /** Client address of the request; null for the service's own actions. */
  readonly address: string | null
  readonly requestId: string | null
  readonly data?: Readonly<Record<string, unknown>>
}

/** Appends events in order. Runs in the transaction of the change that they record. */
export const appendAudit = (events: readonly AuditEvent[]): Query<unknown> =>
  sql.prepared('audit_append', noRows)`
    insert into audit_event (kind, actor_id, account_id, organization_id, address, request_id, data)
    select e ->> 'kind', (e ->> 'actorId')::int, (e ->> 'accountId')::int, (e ->> 'organizationId')::int,
      e ->> 'address', e ->> 'requestId', coalesce(e -> 'data', '{}')
    from jsonb_array_elements(${JSON.stringify(events)}::jsonb) with ordinality as given(e, n) order by n`

export const AUDIT_ORDERS = { at: { 'e.at': 'timestamptz', 'e.id': 'bigint' } } as const

// Selects events with the account as actor, and events of other actors about it.
const ACCOUNT_CONDITIONS = [
  '$2::int is null',
  'e.actor_id = $2::int',
  'e.account_id = $2::int and e.account_id is distinct from e.actor_id',
]
const KIND_CONDITIONS = ['$1::text is null', 'e.kind = $1::text']
const ORGANIZATION_CONDITIONS = ['$3::int is null', 'e.organization_id = $3::int']

type Filters = [
  kind: string | null,
  account: number | null,
  organization: number | null,
  from: string | null,
  to: string | null,
]

/**
 * A page of events, filtered by kind, account (as actor or subject), organization and time. Null matches any value.
 * With both an account and an organization, the search scans the account's events.
 */
export const readAudit = mapOrders(
  AUDIT_ORDERS,
  (column, order, direction): ReadStatement<[...Filters, ...page: PageValues]> => ({
    name: `audit_by_${column}_${direction}`,
    text: buildListText('events', {
      table: 'audit_event',
      row: 'e',
      parameters: 5,
      where: pairConditions(
        pairConditions(ACCOUNT_CONDITIONS, pairConditions(KIND_CONDITIONS, ORGANIZATION_CONDITIONS)),
        [buildTimeSpanCondition('e.at', '$4', '$5')],
      ),
      order,
      direction,
      // The time lets PostgreSQL look up the rows of a page only in their partitions.
      id: ['id', 'at'],
      item: `json_build_object('id', e.id, 'at', iso(e.at), 'kind', e.kind, 'actor_id', e.actor_id, 'account_id', e.account_id,
        'organization_id', e.organization_id, 'address', e.address, 'request_id', e.request_id, 'data', e.data)`,
    }),
  }),
)
