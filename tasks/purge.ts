import { type Belongings, purgeRows } from '../sql/purge.ts'
import { inBatches } from './batches.ts'
import type { TaskContext } from './context.ts'

/**
 * Deletes what belongs to something that nobody sees any more, in batches that commit each by itself: whoever continues
 * finds what is left. Returns how many rows.
 *
 * @param what its name in labels of progress
 */
export async function purgeBelongings(
  { db, progress, signal }: Pick<TaskContext, 'db' | 'progress' | 'signal'>,
  what: string,
  id: number,
  belongings: readonly Belongings[],
): Promise<number> {
  let rows = 0
  for (const some of belongings) {
    // Fewer than a batch only says that the others were locked.
    rows += await inBatches(signal, 1, async (done) => {
      const batch = await db.one(purgeRows(some, id))
      if (batch.count > 0) progress(`${what}: ${some.label}`, rows + done + batch.count)
      return batch
    })
  }
  return rows
}
