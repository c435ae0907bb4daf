import { z } from 'zod'
import { defineTask, lazily } from '../task.ts'
import { IndexResult } from './index-result.ts'
import { INDEXING } from './indexing.ts'

const Payload = z.strictObject({
  collection: z.string(),
  path: z.string(),
  extensions: z.array(z.string()),
  excludes: z.array(z.string()),
})
export type IndexPayload = z.output<typeof Payload>

/**
 * Indexes what is below a path into a collection: new and changed files are read, unchanged ones stay as they are, and
 * missing ones are removed. Nothing is visible until all of it is swapped in; a repeated attempt continues with what
 * the last one has stored.
 */
export const indexFiles = defineTask({
  ...INDEXING,
  name: 'rag.index',
  actor: ({ collection }) => `rag:${collection}`,
  links: ({ collection }) => [{ kind: 'collection', id: collection }],
  payload: Payload,
  result: IndexResult,
  run: lazily(() => import('./index-files-run.ts')),
})
