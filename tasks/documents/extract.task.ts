import { defineTask, loadLazily } from '../task.ts'
import { EXTRACTION_TASK } from './extraction.ts'

/**
 * Reads a document's pages concurrently and stores them in order. An interrupted attempt loses only the pages in
 * flight; the next one continues from there.
 */
export const extractDocument = defineTask({
  ...EXTRACTION_TASK,
  run: loadLazily(() => import('./extract.work.ts')),
})
