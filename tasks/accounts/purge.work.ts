import { LEAVE_BATCH_SIZE, leaveOrganizations } from '../../sql/accounts/deletions.ts'
import { appendAudit } from '../../sql/audit/audit.ts'
import {
  ACCOUNT_DEPENDENTS,
  listDeletedAccounts,
  listDeletedOrganizations,
  ORGANIZATION_DEPENDENTS,
  removeAccount,
  removeOrganization,
} from '../../sql/retention/purge.ts'
import type { TaskContext } from '../context.ts'
import { runInBatches } from '../system/batches.ts'
import { purgeBelongings } from '../system/purge.ts'
import { createInheritanceEvents } from './inheritance.ts'

interface PurgeResult {
  readonly accounts: number
  readonly organizations: number
  readonly rows: number
}

/** Runs `accounts.purge`. */
export async function run(ctx: TaskContext): Promise<PurgeResult> {
  const { db } = ctx
  const totals = { accounts: 0, organizations: 0, rows: 0 }
  for (const { id } of await db.any(listDeletedAccounts())) {
    await leaveAllOrganizations(ctx, id)
    totals.rows += await purgeBelongings(ctx, `Account ${id}`, id, ACCOUNT_DEPENDENTS)
    totals.accounts += await db.run(removeAccount(id))
  }
  // Run this query after the loop above, so that it also finds organizations that have just lost their last owner.
  for (const { id } of await db.any(listDeletedOrganizations())) {
    totals.rows += await purgeBelongings(ctx, `Organization ${id}`, id, ORGANIZATION_DEPENDENTS)
    totals.organizations += await db.run(removeOrganization(id))
  }
  return totals
}

/** Removes an account from the organizations in which the deletion request left it as a member. */
async function leaveAllOrganizations({ db, job, signal }: TaskContext, id: number): Promise<void> {
  const from = { actorId: null, address: null, requestId: job.requestId }
  await runInBatches(signal, LEAVE_BATCH_SIZE, () =>
    db.transaction(async (tx) => {
      const left = await tx.one(leaveOrganizations(id))
      await tx.run(appendAudit(createInheritanceEvents(id, left, from)))
      return { count: left.organizations }
    }),
  )
}
