import { z } from 'zod'
import { defineTask, lazily } from '../task.ts'

/** Removes the rows of deleted collections and of runs that were killed, and reclaims their space. */
export const purge = defineTask({
  name: 'rag.purge',
  queue: 'system',
  pool: 'io',
  actor: () => 'rag.purge',
  payload: z.strictObject({}),
  /** Deleted files of runs and collections, and chunks of these collections. */
  result: z.strictObject({ rows: z.int() }),
  run: lazily(() => import('./purge-run.ts')),
})
