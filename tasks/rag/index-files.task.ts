import { z } from 'zod'
import { Metadata } from '../../sql/rag/documents.ts'
import { defineTask, loadLazily } from '../task.ts'
import { IndexResult } from './index-result.ts'
import { INDEXING_OPTIONS } from './indexing.ts'

const Payload = z.strictObject({
  collection: z.string(),
  path: z.string(),
  extensions: z.array(z.string()),
  excludes: z.array(z.string()),
  metadata: Metadata,
  file_metadata: z.array(z.tuple([z.string(), Metadata])),
})

/**
 * Indexes the files below a path into a collection. Reads new and changed files, keeps unchanged ones and removes
 * missing ones. All changes become visible together when the build is swapped in. A retry continues with the files that
 * the last attempt stored.
 */
export const indexFiles = defineTask({
  ...INDEXING_OPTIONS,
  name: 'rag.index',
  actor: ({ collection }) => `rag:${collection}`,
  links: ({ collection }) => [{ kind: 'collection', id: collection }],
  payload: Payload,
  result: IndexResult,
  run: loadLazily(() => import('./index-files.work.ts')),
})
