import { z } from 'zod'
import { defineTask, lazily } from '../task.ts'

/** Keeps how large each table is, for the growth that admins see. A day has the last measurement of it. */
export const measure = defineTask({
  name: 'system.measure',
  queue: 'system',
  pool: 'io',
  actor: () => 'measure',
  whenBusy: 'join',
  payload: z.strictObject({}),
  result: z.strictObject({ tables: z.int() }),
  run: lazily(() => import('./measure-run.ts')),
})
