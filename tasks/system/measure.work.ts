import { storeTableSizes } from '../../sql/system/sizes.ts'
import type { TaskContext } from '../context.ts'

/** Runs `system.measure`. */
export async function run({ db }: TaskContext): Promise<{ tables: number }> {
  return { tables: (await db.one(storeTableSizes())).count }
}
