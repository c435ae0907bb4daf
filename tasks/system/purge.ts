import { type DependentRows, purgeRows } from '../../sql/retention/purge.ts'
import type { TaskContext } from '../context.ts'
import { runInBatches } from './batches.ts'

/**
 * Deletes the rows of a deleted owner, or clears their references, in batches. Returns the number of rows. Each batch
 * commits separately, so a later attempt continues where this one stopped.
 *
 * @param ownerLabel the name of the owner in progress labels
 */
export async function purgeBelongings(
  { db, reportProgress, signal }: Pick<TaskContext, 'db' | 'reportProgress' | 'signal'>,
  ownerLabel: string,
  id: number,
  belongings: readonly DependentRows[],
): Promise<number> {
  let rows = 0
  for (const group of belongings) {
    // Continue after a partial batch, because other transactions may have locked the remaining rows.
    rows += await runInBatches(signal, 1, async (done) => {
      const batch = await db.one(purgeRows(group, id))
      if (batch.count > 0) reportProgress(`${ownerLabel}: ${group.label}`, rows + done + batch.count)
      return batch
    })
  }
  return rows
}
