import { measureTables } from '../../sql/sizes.ts'
import type { TaskContext } from '../context.ts'

/** The work of `system.measure`. */
export async function run({ db }: TaskContext): Promise<{ tables: number }> {
  return { tables: (await db.one(measureTables())).count }
}
