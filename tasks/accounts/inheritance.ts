import type { LeaveOutcome } from '../../sql/accounts/deletions.ts'
import type { AuditEvent } from '../../sql/audit/audit.ts'
import type { LimitedInvite } from '../../sql/orgs/invites.ts'

type EventOrigin = Pick<AuditEvent, 'actorId' | 'address' | 'requestId'>
type EventDetails = Pick<AuditEvent, 'kind' | 'organizationId' | 'data'>

/**
 * Returns the audit events for the organizations whose only active owner was this account, and for the invites that it
 * sent. Each organization was either inherited by a member or deleted.
 */
export function createInheritanceEvents(
  accountId: number,
  { inherited, deleted, invites }: Omit<LeaveOutcome, 'deleted'> & Partial<LeaveOutcome>,
  { actorId, address, requestId }: EventOrigin,
): AuditEvent[] {
  const from = { actorId, address, requestId }
  return [
    ...inherited.map(
      ({ organization_id: organizationId, heir_id }): AuditEvent => ({
        ...from,
        kind: 'organization.inherited',
        accountId: heir_id,
        organizationId,
        data: { from: accountId },
      }),
    ),
    ...invites.map((invite): AuditEvent => ({ ...from, ...describeLimitedInvite(invite) })),
    ...(deleted ?? []).map(
      ({ organization_id: organizationId, slug }): AuditEvent => ({
        ...from,
        kind: 'organization.deleted',
        organizationId,
        data: { slug },
      }),
    ),
  ]
}

/** Returns the kind and details of the audit event for an invite whose sender has lost the right to it. */
export function describeLimitedInvite(change: LimitedInvite): EventDetails {
  const { invite_id: invite, organization_id: organizationId, email, before, after } = change
  const data = { invite, email, reason: 'sender' }
  return after === null
    ? { kind: 'invite.revoked', organizationId, data: { ...data, role: before } }
    : { kind: 'invite.role_changed', organizationId, data: { ...data, from: before, to: after } }
}
