import { z } from 'zod'
import { defineTask, lazily } from '../task.ts'

/**
 * Draws one page that has a text layer when its image is requested. It has its own queue: the client waits for the
 * answer, and long documents would be ahead of it.
 */
export const draw = defineTask({
  name: 'documents.draw',
  queue: 'pictures',
  pool: 'children',
  actor: ({ documentId, page }) => `picture:${documentId}/${page}`,
  links: ({ documentId }) => [{ kind: 'document', id: documentId }],
  whenBusy: 'join',
  timeoutSeconds: 90,
  tries: 2,
  payload: z.strictObject({ documentId: z.int(), page: z.int() }),
  result: z.strictObject({ drawn: z.boolean() }),
  run: lazily(() => import('./draw-run.ts')),
})
