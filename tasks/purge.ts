import { type Dependents, purgeRows } from '../sql/purge.ts'
import { runInBatches } from './batches.ts'
import type { TaskContext } from './context.ts'

/**
 * Deletes the rows of a deleted owner in batches. Each batch commits separately, so a later attempt continues where
 * this one stopped.
 * Returns the number of deleted or cleared rows.
 *
 * @param ownerLabel the owner in progress labels
 */
export async function purgeBelongings(
  { db, progress, signal }: Pick<TaskContext, 'db' | 'progress' | 'signal'>,
  ownerLabel: string,
  id: number,
  belongings: readonly Dependents[],
): Promise<number> {
  let rows = 0
  for (const group of belongings) {
    // A partial batch only means that other transactions locked the rest.
    rows += await runInBatches(signal, 1, async (done) => {
      const batch = await db.one(purgeRows(group, id))
      if (batch.count > 0) progress(`${ownerLabel}: ${group.label}`, rows + done + batch.count)
      return batch
    })
  }
  return rows
}
