import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'
import { PlacedWord } from './words.ts'

/**
 * Renders a page with a text layer when a client requests its image, or finds its words. Uses a separate queue, so that
 * long documents do not delay the client.
 */
export const renderPage = defineTask({
  name: 'documents.draw',
  queue: 'pictures',
  pool: 'children',
  actor: ({ documentId, page, find }) =>
    find === undefined ? `picture:${documentId}/${page}` : `words:${documentId}/${page}/${find.join('/')}`,
  links: ({ documentId }) => [{ kind: 'document', id: documentId }],
  whenBusy: 'join',
  timeoutSeconds: 90,
  tries: 2,
  payload: z.strictObject({
    documentId: z.int(),
    page: z.int(),
    /** Parts of the words to find, without case and accents, instead of drawing the image. */
    find: z.array(z.string()).optional(),
  }),
  result: z.strictObject({ drawn: z.boolean(), words: z.array(PlacedWord).optional() }),
  run: loadLazily(() => import('./draw.work.ts')),
})
