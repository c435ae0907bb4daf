import type { LeaveOutcome } from '../../sql/accounts/deletions.ts'
import type { AuditEvent } from '../../sql/audit/audit.ts'

/**
 * Returns the audit events for the organizations whose only owner was this account. Each organization was either
 * inherited by a member or deleted.
 */
export function createInheritanceEvents(
  accountId: number,
  { inherited, deleted }: LeaveOutcome,
  { actorId, address, requestId }: Pick<AuditEvent, 'actorId' | 'address' | 'requestId'>,
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
    ...deleted.map(
      ({ organization_id: organizationId, slug }): AuditEvent => ({
        ...from,
        kind: 'organization.deleted',
        organizationId,
        data: { slug },
      }),
    ),
  ]
}
