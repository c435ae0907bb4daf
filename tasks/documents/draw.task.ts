import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'

/**
 * Renders a page with a text layer when a client requests its image. Uses a separate queue, so that long documents do
 * not delay the client.
 */
export const renderPage = defineTask({
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
  run: loadLazily(() => import('./draw.work.ts')),
})
