import { notifyAccountChanged } from '../../sql/accounts/accounts.ts'
import { deleteAccount } from '../../sql/accounts/deletions.ts'
import { type AuditEvent, appendAudit } from '../../sql/audit/audit.ts'
import type { Queries } from '../../sql/db.ts'
import { type EnqueueOptions, enqueue } from '../task.ts'
import { createInheritanceEvents } from './inheritance.ts'
import { purgeAccounts } from './purge.task.ts'

/**
 * Marks an account as deleted and adds the job that purges its data; returns false if there is no such account. Callers
 * must first cancel everything that costs the owner money.
 *
 * @param auditEvent creates the audit event from the address
 * @throws account.last_admin
 */
export async function deleteAndPurge(
  tx: Queries,
  id: number,
  eventOf: (email: string) => AuditEvent,
  options: Omit<EnqueueOptions, 'ownerId'>,
): Promise<boolean> {
  const gone = await tx.maybeOne(deleteAccount(id))
  if (gone === null) return false
  const deleted = eventOf(gone.email)
  await tx.run(appendAudit([deleted, ...createInheritanceEvents(id, gone, deleted)]))
  // The job has no owner. Otherwise the purge would delete its own job.
  await enqueue(tx, purgeAccounts, {}, { ...options, ownerId: null })
  await tx.run(notifyAccountChanged(id))
  return true
}
