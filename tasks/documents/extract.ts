import { defineTask, lazily } from '../task.ts'
import { EXTRACTION } from './extraction.ts'

/**
 * Reads a document's pages, several at once. They are stored in order and each on its own, so an attempt that is cut
 * short loses only the pages in hand; the next one continues from there.
 */
export const extract = defineTask({ ...EXTRACTION, run: lazily(() => import('./extract-run.ts')) })
