import { z } from 'zod'
import { defineTask, lazily } from '../task.ts'

/**
 * Draws one page that has a text layer, once somebody asks for its picture. In a queue of its own: whoever asks waits
 * for the answer, and long documents would be before it.
 */
export const draw = defineTask({
  name: 'documents.draw',
  queue: 'pictures',
  pool: 'children',
  actor: ({ documentId, page }) => `picture:${documentId}/${page}`,
  whenBusy: 'join',
  timeoutSeconds: 90,
  tries: 2,
  payload: z.strictObject({ documentId: z.int(), page: z.int() }),
  result: z.strictObject({ drawn: z.boolean() }),
  run: lazily(() => import('./draw-run.ts')),
})
