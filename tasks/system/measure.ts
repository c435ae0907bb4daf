import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'

/** Stores the size of each table, for the growth that admins see. Each day keeps its last measurement. */
export const measure = defineTask({
  name: 'system.measure',
  queue: 'system',
  pool: 'io',
  actor: () => 'measure',
  whenBusy: 'join',
  payload: z.strictObject({}),
  result: z.strictObject({ tables: z.int() }),
  run: loadLazily(() => import('./measure-run.ts')),
})
