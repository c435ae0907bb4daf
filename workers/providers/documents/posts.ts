/** Reads blog post files in child processes. */
import type { UploadFormat } from '../../../sql/blog/transfer.ts'
import { fail } from '../../../sql/errors.ts'
import type { ItemResult } from '../../../tasks/blog/items.ts'
import { parsePostPath } from '../../../tasks/blog/post-path.ts'
import { slugify } from '../../../tasks/blog/slugs.ts'
import type { PostReader } from '../../../tasks/context.ts'
import {
  type ChildLease,
  ChildLost,
  type Children,
  type Limits,
  retryAfterLoss,
} from '../../children/ports.ts'
import { sendBytes } from '../../children/work.ts'

export interface PostOptions {
  readonly signal: AbortSignal
  /** Limits for opening the file, and for each post. */
  readonly limits?: Limits
  /** CPU time for all posts of the file together, in ms. */
  readonly wholeCpuMs?: number
}

// A megabyte of Markdown takes 50 ms.
const LIMITS: Limits = { cpuMs: 5000 }
// A blog of 10,000 posts takes half of this time. A slower file would delay the imports of all users.
const MAX_FILE_CPU_MS = 20_000
// Limit of posts that certainly caused the loss of a child. A file with more of them is rejected.
const MAX_UNREADABLE = 3
// Limit on all lost children, including losses that the file may not have caused.
const MAX_LOSSES = 2 * MAX_UNREADABLE + 2
// Time that a file keeps its child while others wait, in ms.
const SLICE_MS = 2000

interface UploadedFile {
  readonly name: string
  readonly format: UploadFormat
  readonly bytes: Uint8Array
}

/** A child with the file open. */
interface OpenedFile {
  readonly lease: ChildLease
  readonly files: readonly string[]
  readonly since: number
}

/**
 * Opens a file of posts.
 *
 * @throws the same errors as `Providers.readPosts`.
 */
export async function openPosts(
  children: Children,
  file: UploadedFile,
  options: PostOptions,
): Promise<PostReader> {
  const source = new PostFile(children, file, options)
  return new PostFileReader(source, await source.open())
}

/** A file of posts, which can be opened repeatedly. */
class PostFile {
  readonly limits: Limits
  readonly #children: Children
  readonly #file: UploadedFile
  readonly #signal: AbortSignal
  readonly #wholeCpuMs: number

  constructor(
    children: Children,
    file: UploadedFile,
    { signal, limits = LIMITS, wholeCpuMs = MAX_FILE_CPU_MS }: PostOptions,
  ) {
    this.limits = limits
    this.#children = children
    this.#file = file
    this.#signal = signal
    this.#wholeCpuMs = wholeCpuMs
  }

  open(): Promise<OpenedFile> {
    return retryAfterLoss(() => this.#openOnce()).catch((error) => {
      throw error instanceof ChildLost ? this.createTooComplexError(error) : error
    })
  }

  createTooComplexError(error: ChildLost): Error {
    return fail('import.too_complex', { reason: error.reason(this.limits) })
  }

  /** Returns the result for a post that caused the loss of children. */
  createUnreadableItem(path: string, at: number, error: ChildLost): ItemResult {
    const reason = error.reason(this.limits)
    return ['json', 'xml'].includes(this.#file.format)
      ? { slug: null, message: `Item ${at + 1}: it ${reason}`, isSkipped: false }
      : { slug: slugify(parsePostPath(path).stem) || null, message: `The file ${reason}`, isSkipped: false }
  }

  async #openOnce(): Promise<OpenedFile> {
    const { name: fileName, format, bytes } = this.#file
    const lease = await this.#children.lease({ urgent: true, signal: this.#signal })
    try {
      await sendBytes(lease, bytes)
      const files = await lease.ask('posts.open', { fileName, format, cpuMs: this.#wholeCpuMs }, this.limits)
      return { lease, files, since: performance.now() }
    } catch (error) {
      lease.release()
      throw error
    }
  }
}

class PostFileReader implements PostReader {
  readonly count: number
  readonly #source: PostFile
  #opened: OpenedFile

  constructor(source: PostFile, opened: OpenedFile) {
    this.count = opened.files.length
    this.#source = source
    this.#opened = opened
  }

  /**
   * Reads all posts. Reports a post that lost its child as unreadable, but after a crash only if another child crashes
   * on it, too.
   */
  async *read(): ReturnType<PostReader['read']> {
    const { files } = this.#opened
    const unreadable = new Map<number, ItemResult>()
    let [next, suspect, losses] = [0, -1, 0]
    while (next < files.length) {
      const to = Math.min(...[...unreadable.keys()].filter((n) => n >= next), files.length)
      const items = to === next ? [unreadable.get(next)!] : await this.#readFrom(next, to)
      if (!(items instanceof ChildLost)) {
        for (const item of items) yield { file: files[next++]!, read: item }
        if (this.#isSliceOver()) await this.#reopen()
        continue
      }
      const at = items.at ?? next
      const isCertain = at === suspect || items.isOverTime
      if (++losses > MAX_LOSSES || (isCertain && unreadable.size === MAX_UNREADABLE))
        throw this.#source.createTooComplexError(items)
      if (isCertain) unreadable.set(at, this.#source.createUnreadableItem(files[at]!, at, items))
      suspect = at
      await this.#reopen()
    }
  }

  close(): void {
    this.#opened.lease.release()
  }

  #readFrom(from: number, to: number): Promise<readonly ItemResult[] | ChildLost> {
    return this.#opened.lease.ask('posts.read', { from, to }, this.#source.limits).catch((error) => {
      if (error instanceof ChildLost) return error
      throw error
    })
  }

  /** True if others have waited long enough for the child. */
  #isSliceOver(): boolean {
    const { lease, since } = this.#opened
    return lease.shouldRelease && performance.now() - since > SLICE_MS
  }

  async #reopen(): Promise<void> {
    this.#opened.lease.release()
    this.#opened = await this.#source.open()
  }
}
