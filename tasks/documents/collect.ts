import { z } from 'zod'
import { defineTask, lazily } from '../task.ts'

/**
 * Removes what nobody can reach any more: pages of documents that have left the trash, bytes that no document uses, and
 * what broken uploads have left. Each step may be cut short or done twice, even concurrently.
 */
export const collect = defineTask({
  name: 'documents.collect',
  queue: 'system',
  pool: 'io',
  actor: () => 'collect',
  whenBusy: 'join',
  payload: z.strictObject({}),
  result: z.strictObject({
    /** Deleted documents whose pages are gone. */
    documents: z.int(),
    /** Blobs whose bytes are gone. */
    blobs: z.int(),
    /** Blobs that could not be removed; the next run tries again. */
    failed: z.int(),
  }),
  run: lazily(() => import('./collect-run.ts')),
})
