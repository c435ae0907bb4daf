import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'

/**
 * Collects garbage: pages of documents that have left the trash, bytes that no document uses, and remains of failed
 * uploads. Each step may be interrupted, repeated or run concurrently.
 */
export const collectGarbage = defineTask({
  name: 'documents.collect',
  queue: 'system',
  pool: 'io',
  actor: () => 'collect',
  whenBusy: 'join',
  payload: z.strictObject({}),
  result: z.strictObject({
    /** Number of deleted documents whose pages were removed. */
    documents: z.int(),
    /** Number of blobs whose bytes were removed. */
    blobs: z.int(),
    /** Number of blobs that could not be removed; the next run retries them. */
    failed: z.int(),
  }),
  run: loadLazily(() => import('./collect.work.ts')),
})
