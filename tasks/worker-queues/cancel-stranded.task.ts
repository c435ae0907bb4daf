import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'

/** Cancels the unfinished jobs of worker queues that no longer exist: of one, or with null of all. */
export const cancelStranded = defineTask({
  name: 'system.cancel_stranded',
  queue: 'system',
  pool: 'io',
  isTool: true,
  payload: z.strictObject({ queue: z.string().nullable() }),
  result: z.strictObject({ cancelled: z.int() }),
  run: loadLazily(() => import('./cancel-stranded.work.ts')),
})
