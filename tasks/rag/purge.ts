import { z } from 'zod'
import { defineTask, lazily } from '../task.ts'

/** Removes the rows of deleted collections and of runs that were killed, and reclaims their space. */
export const purge = defineTask({
  name: 'rag.purge',
  queue: 'system',
  pool: 'io',
  actor: () => 'rag.purge',
  payload: z.strictObject({}),
  result: z.strictObject({ files: z.int() }),
  run: lazily(() => import('./purge-run.ts')),
})
