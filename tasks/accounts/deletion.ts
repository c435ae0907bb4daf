import { accountChanged, deleteAccount } from '../../sql/accounts.ts'
import { type AuditEvent, appendAudit } from '../../sql/audit.ts'
import type { Queries } from '../../sql/db.ts'
import { type EnqueueOptions, enqueue } from '../task.ts'
import { inheritanceEvents } from './inheritance.ts'
import { purgeAccounts } from './purge.ts'

/**
 * Deletes an account for everybody, and adds the job that deletes what belongs to it; false when there is none. Whoever
 * calls has seen to it that nothing is running that costs its owner money.
 *
 * @param eventOf the event of the deletion of the account with this address.
 * @throws account.last_admin when no active admin would be left.
 */
export async function deleteForAll(
  tx: Queries,
  id: number,
  eventOf: (email: string) => AuditEvent,
  options: Omit<EnqueueOptions, 'ownerId'>,
): Promise<boolean> {
  const gone = await tx.maybeOne(deleteAccount(id))
  if (gone === null) return false
  const deleted = eventOf(gone.email)
  await tx.run(appendAudit([deleted, ...inheritanceEvents(id, gone, deleted)]))
  // Nobody's: it must not go with an account.
  await enqueue(tx, purgeAccounts, {}, { ...options, ownerId: null })
  await tx.run(accountChanged(id))
  return true
}
