import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'

/** Deletes the rows of deleted collections and of builds whose job has finished, then reclaims their space. */
export const purgeCollections = defineTask({
  name: 'rag.purge',
  queue: 'system',
  pool: 'io',
  actor: () => 'rag.purge',
  payload: z.strictObject({}),
  /** Number of deleted files in builds of finished jobs, plus the number of deleted rows of collections. */
  result: z.strictObject({ rows: z.int() }),
  run: loadLazily(() => import('./purge.work.ts')),
})
