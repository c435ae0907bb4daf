import type { TaskContext } from '../context.ts'
import { reseal } from './reseal.ts'

/** Runs `system.reseal`. */
export async function run({
  db,
  keys,
  log,
  signal,
  reportProgress,
}: TaskContext): Promise<{ resealed: number; left: number }> {
  const counts = await reseal(db, keys, {
    signal,
    onProgress: (table, resealed) => reportProgress(`Sealed texts of ${table}`, resealed),
  })
  if (counts.left > 0) log.warn(counts, 'Some sealed texts still need SECRET_KEYS_PREVIOUS')
  else if (counts.resealed > 0) log.info(counts, 'No stored text needs SECRET_KEYS_PREVIOUS any more')
  return counts
}
