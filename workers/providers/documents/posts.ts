/** Reads files of posts in child processes. */
import type { UploadFormat } from '../../../sql/blog/transfer.ts'
import { fail } from '../../../sql/errors.ts'
import type { ReadItem } from '../../../tasks/blog/items.ts'
import { placeOf } from '../../../tasks/blog/place.ts'
import { slugify } from '../../../tasks/blog/slugs.ts'
import type { PostReader } from '../../../tasks/context.ts'
import { type ChildLease, ChildLost, type Children, type Limits, onceMore } from '../../children/ports.ts'
import { sendBytes } from '../../children/work.ts'

export interface PostOptions {
  readonly signal: AbortSignal
  /** For opening the file, and for one post. */
  readonly limits?: Limits
  /** For all posts of the file together, in ms of CPU time. */
  readonly wholeCpuMs?: number
}

// A megabyte of Markdown takes 50 ms.
const LIMITS: Limits = { cpuMs: 5000 }
// A blog of 10,000 posts takes half of this. A file that takes longer would hold up everybody's imports.
const WHOLE_CPU_MS = 20_000
// Posts that cost a child for certain: a file that has more of them is not a blog.
const MAX_LOST = 3
// All losses of children, including those that something else may have caused.
const MAX_LOSSES = 2 * MAX_LOST + 2
// How long a file keeps its child while others wait.
const SLICE_MS = 2000

interface UploadedFile {
  readonly name: string
  readonly format: UploadFormat
  readonly bytes: Uint8Array
}

/** The file, open in a child. */
interface Opened {
  readonly lease: ChildLease
  readonly files: readonly string[]
  readonly since: number
}

/** @throws as `Providers.readPosts`. */
export async function openPosts(
  children: Children,
  file: UploadedFile,
  options: PostOptions,
): Promise<PostReader> {
  const source = new PostFile(children, file, options)
  return new PostFileReader(source, await source.open())
}

/** A file of posts, which can be opened again and again. */
class PostFile {
  readonly limits: Limits
  readonly #children: Children
  readonly #file: UploadedFile
  readonly #signal: AbortSignal
  readonly #wholeCpuMs: number

  constructor(
    children: Children,
    file: UploadedFile,
    { signal, limits = LIMITS, wholeCpuMs = WHOLE_CPU_MS }: PostOptions,
  ) {
    this.limits = limits
    this.#children = children
    this.#file = file
    this.#signal = signal
    this.#wholeCpuMs = wholeCpuMs
  }

  open(): Promise<Opened> {
    return onceMore(() => this.#openOnce()).catch((error) => {
      throw error instanceof ChildLost ? this.tooComplex(error) : error
    })
  }

  tooComplex(error: ChildLost): Error {
    return fail('import.too_complex', { reason: error.reason(this.limits) })
  }

  /** The result for a post over which children were lost. */
  unreadable(path: string, at: number, error: ChildLost): ReadItem {
    const reason = error.reason(this.limits)
    return this.#file.format === 'json'
      ? { slug: null, message: `Item ${at + 1}: it ${reason}` }
      : { slug: slugify(placeOf(path).stem) || null, message: `The file ${reason}` }
  }

  async #openOnce(): Promise<Opened> {
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
  #opened: Opened

  constructor(source: PostFile, opened: Opened) {
    this.count = opened.files.length
    this.#source = source
    this.#opened = opened
  }

  /** Reports a post over which its child is lost as such; after a crash only if another child is lost over it, too. */
  async *read(): ReturnType<PostReader['read']> {
    const { files } = this.#opened
    const lost = new Map<number, ReadItem>()
    let [next, suspect, losses] = [0, -1, 0]
    while (next < files.length) {
      const to = Math.min(...[...lost.keys()].filter((n) => n >= next), files.length)
      const items = to === next ? [lost.get(next)!] : await this.#readFrom(next, to)
      if (!(items instanceof ChildLost)) {
        for (const item of items) yield { file: files[next++]!, read: item }
        if (this.#isOver()) await this.#reopen()
        continue
      }
      const at = items.at ?? next
      const isCertain = at === suspect || items.isSpent
      if (++losses > MAX_LOSSES || (isCertain && lost.size === MAX_LOST)) throw this.#source.tooComplex(items)
      if (isCertain) lost.set(at, this.#source.unreadable(files[at]!, at, items))
      suspect = at
      await this.#reopen()
    }
  }

  close(): void {
    this.#opened.lease.release()
  }

  #readFrom(from: number, to: number): Promise<readonly ReadItem[] | ChildLost> {
    return this.#opened.lease.ask('posts.read', { from, to }, this.#source.limits).catch((error) => {
      if (error instanceof ChildLost) return error
      throw error
    })
  }

  /** Whether others have waited long enough for the child. */
  #isOver(): boolean {
    const { lease, since } = this.#opened
    return lease.isDue && performance.now() - since > SLICE_MS
  }

  async #reopen(): Promise<void> {
    this.#opened.lease.release()
    this.#opened = await this.#source.open()
  }
}
