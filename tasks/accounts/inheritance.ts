import type { Left } from '../../sql/accounts.ts'
import type { AuditEvent } from '../../sql/audit.ts'

/** Audit events for the organizations of which an account was the only owner: inherited by a member, or deleted. */
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
