import type { TaskContext } from '../context.ts'
import { reseal } from './reseal.ts'

/** Runs `system.reseal`. */
export async function run({
  db,
  keys,
  log,
  signal,
  reportProgress,
}: TaskContext): Promise<{ renewed: number; left: number }> {
  const counts = await reseal(db, keys, {
    signal,
    onProgress: (table, renewed) => reportProgress(`Sealed texts of ${table}`, renewed),
  })
  if (counts.left > 0) log.warn(counts, 'Some sealed texts still need SECRET_KEYS_PREVIOUS')
  else if (counts.renewed > 0) log.info(counts, 'No stored text needs SECRET_KEYS_PREVIOUS any more')
  return counts
}
