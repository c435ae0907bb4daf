/** Reads files of posts in child processes. */
import type { UploadFormat } from '../../sql/blog/transfer.ts'
import { fail } from '../../sql/errors.ts'
import type { ReadItem } from '../../tasks/blog/items.ts'
import { placeOf } from '../../tasks/blog/place.ts'
import { slugify } from '../../tasks/blog/slugs.ts'
import type { PostReader } from '../../tasks/context.ts'
import { type ChildLease, ChildLost, type Children, type Limits } from '../children/ports.ts'
import { sendBytes } from '../children/work.ts'

export interface PostOptions {
  readonly signal: AbortSignal
  /** For the opening of the file, and for one post. */
  readonly limits?: Limits
}

// A megabyte of Markdown takes 50 ms. The writer's transaction is open meanwhile, for a minute without a statement at most.
const LIMITS: Limits = { cpuMs: 5000, wallMs: 45_000 }
// A file that has more posts of that kind is no blog.
const MOST_LOST = 3

/** @throws as `Providers.readPosts`. */
export async function openPosts(
  children: Children,
  file: { readonly name: string; readonly format: UploadFormat; readonly bytes: Uint8Array },
  { signal, limits = LIMITS }: PostOptions,
): Promise<PostReader> {
  const open = async (): Promise<{ lease: ChildLease; files: readonly string[] }> => {
    const lease = await children.lease({ urgent: true, signal })
    try {
      await sendBytes(lease, file.bytes)
      const files = await lease.ask('posts.open', { fileName: file.name, format: file.format }, limits)
      return { lease, files }
    } catch (error) {
      lease.release()
      throw error instanceof ChildLost
        ? fail('import.too_complex', { reason: reasonOf(error, limits) })
        : error
    }
  }
  let { lease, files } = await open()

  /** A post over which its child is lost is told as such; after a crash only when another child is lost over it, too. */
  async function* read(): ReturnType<PostReader['read']> {
    const lost = new Map<number, ReadItem>()
    let [next, suspect] = [0, -1]
    try {
      while (next < files.length) {
        const to = Math.min(...[...lost.keys()].filter((n) => n >= next), files.length)
        const items =
          to === next
            ? [lost.get(next)!]
            : await lease.ask('posts.read', { from: next, to }, limits).catch((error) => {
                if (error instanceof ChildLost) return error
                throw error
              })
        if (!(items instanceof ChildLost)) {
          for (const item of items) yield { file: files[next++]!, read: item }
          continue
        }
        const at = items.at ?? next
        const isCertain = at === suspect || items.why === 'cpu' || items.why === 'time'
        if (isCertain && lost.size === MOST_LOST)
          throw fail('import.too_complex', { reason: reasonOf(items, limits) })
        if (isCertain) lost.set(at, unreadable(files[at]!, at, reasonOf(items, limits)))
        suspect = at
        ;({ lease } = await open())
      }
    } finally {
      lease.release()
    }
  }
  const unreadable = (path: string, at: number, reason: string): ReadItem =>
    file.format === 'json'
      ? { slug: null, message: `Item ${at + 1}: it ${reason}` }
      : { slug: slugify(placeOf(path).stem) || null, message: `The file ${reason}` }
  return { count: files.length, read }
}

function reasonOf({ why }: ChildLost, { cpuMs }: Limits): string {
  if (why === 'memory') return 'needs more memory than there is for one file'
  if (why === 'crash') return 'crashes its reader'
  return `takes more than ${Math.round(cpuMs / 1000)} s to be read`
}
