import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'

/**
 * Updates the remaining posts of renamed tags, and removes deleted tags from their posts. The request itself has
 * already changed the tag and some of its posts.
 */
export const retagPosts = defineTask({
  name: 'blog.retag',
  queue: 'system',
  pool: 'io',
  actor: () => 'blog.retag',
  payload: z.strictObject({}),
  result: z.strictObject({ posts: z.int() }),
  run: loadLazily(() => import('./retag.work.ts')),
})
