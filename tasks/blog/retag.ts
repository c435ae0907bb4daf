import { z } from 'zod'
import { defineTask, lazily } from '../task.ts'

/**
 * Shows changed tags in all of their posts, and removes deleted ones from theirs. The change itself, and the first posts,
 * are the request's.
 */
export const retag = defineTask({
  name: 'blog.retag',
  queue: 'system',
  pool: 'io',
  actor: () => 'blog.retag',
  payload: z.strictObject({}),
  result: z.strictObject({ posts: z.int() }),
  run: lazily(() => import('./retag-run.ts')),
})
