import { maintainPartitions, PARTITIONED_TABLES, PRUNED_TABLES } from '../../sql/retention/retention.ts'
import type { TaskContext } from '../context.ts'
import { runInBatches } from './batches.ts'

const BATCH_SIZE = 1000

/** Runs `system.retention`. */
export async function run({
  db,
  settings,
  signal,
  reportProgress,
}: TaskContext): Promise<Record<string, number>> {
  const removed: Record<string, number> = {}
  for (const { table, keep, prune } of PRUNED_TABLES) {
    const days = settings.retentionDays[keep]
    if (days === 0) continue
    let rows = 0
    await runInBatches(signal, BATCH_SIZE, async () => {
      const batch = await db.one(prune(days, BATCH_SIZE))
      rows += batch.deleted
      if (batch.deleted > 0) reportProgress(`Old rows of ${table}`, rows)
      return batch
    })
    removed[table] = rows
  }
  for (const { table, keep } of PARTITIONED_TABLES)
    removed[table] = (await db.one(maintainPartitions(table, settings.retentionDays[keep]))).dropped
  return removed
}
