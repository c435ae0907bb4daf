import type { Left } from '../../sql/accounts.ts'
import type { AuditEvent } from '../../sql/audit.ts'

/** Audit events of the organizations that an account alone owned: who inherited them, or that they were deleted. */
export function inheritanceEvents(
  accountId: number,
  { inherited, deleted }: Left,
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
