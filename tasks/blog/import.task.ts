import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'
import { ImportResult, ON_CONFLICT } from './shapes.ts'

const Payload = z.strictObject({ uploadId: z.int(), onConflict: z.enum(ON_CONFLICT) })

/**
 * Imports a file of posts in one transaction. An interrupted attempt leaves nothing behind, and the next one starts
 * over.
 */
export const importPosts = defineTask({
  name: 'blog.import',
  queue: 'blog',
  pool: 'children',
  actor: () => 'blog',
  payload: Payload,
  result: ImportResult,
  run: loadLazily(() => import('./import.work.ts')),
})
