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
  /** For the opening of the file, and for one post. */
  readonly limits?: Limits
  /** For all posts of the file, in ms of CPU time. */
  readonly wholeCpuMs?: number
}

// A megabyte of Markdown takes 50 ms.
const LIMITS: Limits = { cpuMs: 5000 }
// A blog of 10,000 posts takes half of it. What takes longer holds up everybody's imports.
const WHOLE_CPU_MS = 20_000
// A file that has more posts of that kind is no blog.
const MOST_LOST = 3
// Lost for reasons that may be others', until it is enough.
const MOST_LOSSES = 2 * MOST_LOST + 2
// For so long it keeps its child although others wait.
const SLICE_MS = 2000

/** @throws as `Providers.readPosts`. */
export async function openPosts(
  children: Children,
  file: { readonly name: string; readonly format: UploadFormat; readonly bytes: Uint8Array },
  { signal, limits = LIMITS, wholeCpuMs = WHOLE_CPU_MS }: PostOptions,
): Promise<PostReader> {
  const openOnce = async (): Promise<{ lease: ChildLease; files: readonly string[]; since: number }> => {
    const lease = await children.lease({ urgent: true, signal })
    try {
      await sendBytes(lease, file.bytes)
      const files = await lease.ask(
        'posts.open',
        { fileName: file.name, format: file.format, cpuMs: wholeCpuMs },
        limits,
      )
      return { lease, files, since: performance.now() }
    } catch (error) {
      lease.release()
      throw error
    }
  }
  const tooComplex = (error: ChildLost): Error => fail('import.too_complex', { reason: error.reason(limits) })
  const open = (): ReturnType<typeof openOnce> =>
    onceMore(openOnce).catch((error) => {
      throw error instanceof ChildLost ? tooComplex(error) : error
    })
  let opened = await open()
  const reopen = async (): Promise<void> => {
    opened.lease.release()
    opened = await open()
  }

  /** A post over which its child is lost is told as such; after a crash only when another child is lost over it, too. */
  async function* read(): ReturnType<PostReader['read']> {
    const { files } = opened
    const lost = new Map<number, ReadItem>()
    let [next, suspect, losses] = [0, -1, 0]
    while (next < files.length) {
      const to = Math.min(...[...lost.keys()].filter((n) => n >= next), files.length)
      const items = to === next ? [lost.get(next)!] : await readFrom(next, to)
      if (!(items instanceof ChildLost)) {
        for (const item of items) yield { file: files[next++]!, read: item }
        if (opened.lease.isDue && performance.now() - opened.since > SLICE_MS) await reopen()
        continue
      }
      const at = items.at ?? next
      const isCertain = at === suspect || items.isSpent
      if (++losses > MOST_LOSSES || (isCertain && lost.size === MOST_LOST)) throw tooComplex(items)
      if (isCertain) lost.set(at, unreadable(files[at]!, at, items.reason(limits)))
      suspect = at
      await reopen()
    }
  }
  const readFrom = (from: number, to: number): Promise<readonly ReadItem[] | ChildLost> =>
    opened.lease.ask('posts.read', { from, to }, limits).catch((error) => {
      if (error instanceof ChildLost) return error
      throw error
    })
  const unreadable = (path: string, at: number, reason: string): ReadItem =>
    file.format === 'json'
      ? { slug: null, message: `Item ${at + 1}: it ${reason}` }
      : { slug: slugify(placeOf(path).stem) || null, message: `The file ${reason}` }
  return { count: opened.files.length, read, close: () => opened.lease.release() }
}
