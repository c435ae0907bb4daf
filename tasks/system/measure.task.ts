import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'

/** Records the size of each table, so that admins can see its growth. Keeps the last measurement of each day. */
export const measureTables = defineTask({
  name: 'system.measure',
  queue: 'system',
  pool: 'io',
  actor: () => 'measure',
  whenBusy: 'join',
  payload: z.strictObject({}),
  result: z.strictObject({ tables: z.int() }),
  run: loadLazily(() => import('./measure.work.ts')),
})
