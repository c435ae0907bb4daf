import type { NoPost } from './items.ts'
import type { ImportResult } from './shapes.ts'

/** Maximum number of listed files; further ones are only counted. */
export const MAX_LISTED_FILES = 10_000

/** Counts the posts of one import, and lists each file that makes no post. */
export class ImportReport {
  readonly #result: ImportResult = { created: 0, updated: 0, skipped: 0, failed: 0, errors: [] }

  addWritten(kind: 'created' | 'updated', posts: number): void {
    this.#result[kind] += posts
  }

  /** Counts and lists a post that is not written, because another one has its slug. */
  addConflict(file: string, slug: string, message: string): void {
    this.#result.skipped++
    this.#list({ slug, file, message })
  }

  addNoPost(file: string, { slug, message, isSkipped }: NoPost): void {
    this.#result[isSkipped ? 'skipped' : 'failed']++
    this.#list({ slug, file, message })
  }

  /** Lists a remark about the whole upload, which is no file of its own. */
  note(file: string, message: string): void {
    this.#list({ slug: null, file, message })
  }

  build(): ImportResult {
    return this.#result
  }

  #list(line: ImportResult['errors'][number]): void {
    if (this.#result.errors.length < MAX_LISTED_FILES) this.#result.errors.push(line)
  }
}
