import { keepPartitions, PARTITIONED, SWEPT } from '../../sql/retention.ts'
import { inBatches } from '../batches.ts'
import type { TaskContext } from '../context.ts'

const BATCH = 1000

/** Runs `system.retention`. */
export async function run({ db, settings, signal, progress }: TaskContext): Promise<Record<string, number>> {
  const removed: Record<string, number> = {}
  for (const { table, keep, sweep } of SWEPT) {
    const days = settings.keepDays[keep]
    if (days === 0) continue
    let rows = 0
    await inBatches(signal, BATCH, async () => {
      const batch = await db.one(sweep(days, BATCH))
      rows += batch.deleted
      if (batch.deleted > 0) progress(`Old rows of ${table}`, rows)
      return batch
    })
    removed[table] = rows
  }
  for (const { table, keep } of PARTITIONED)
    removed[table] = (await db.one(keepPartitions(table, settings.keepDays[keep]))).dropped
  return removed
}
