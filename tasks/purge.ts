import { type Belongings, purgeRows } from '../sql/purge.ts'
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
    for (let count = 1; count > 0; rows += count) {
      signal.throwIfAborted()
      count = (await db.one(purgeRows(some, id))).count
      if (count > 0) progress(`${what}: ${some.label}`, rows + count)
    }
  }
  return rows
}
