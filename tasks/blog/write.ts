import {
  insertPosts,
  neededTags,
  overwritePosts,
  type Slugged,
  setAllTags,
  takenSlugs,
} from '../../sql/blog/transfer.ts'
import type { Queries } from '../../sql/db.ts'
import { fail } from '../../sql/errors.ts'
import type { ReadPost } from './interpret.ts'
import type { OnConflict } from './shapes.ts'

export interface Author {
  readonly id: number | null
  readonly name: string | null
}

export interface Counts {
  created: number
  updated: number
  skipped: number
}

// Posts that are written at once, and total characters of their texts.
const MAX_POSTS = 200
const MAX_CHARACTERS = 2_000_000

/** Writes the posts of one import in batches, in one transaction. */
export class Writer {
  readonly counts: Counts = { created: 0, updated: 0, skipped: 0 }
  private readonly tx: Queries
  private readonly author: Author
  private readonly onConflict: OnConflict
  private readonly seen = new Set<string>()
  private readonly tagIds = new Map<string, number>()
  private batch: ReadPost[] = []
  private characters = 0

  constructor(tx: Queries, author: Author, onConflict: OnConflict) {
    this.tx = tx
    this.author = author
    this.onConflict = onConflict
  }

  async add(read: ReadPost): Promise<void> {
    const { slug, content } = read.post
    // Two posts with the same slug in one import collide as with an existing post.
    if (this.seen.has(slug)) {
      if (this.onConflict === 'fail') throw fail('import.conflict', { slug })
      if (this.onConflict === 'skip') return void this.counts.skipped++
      await this.flush()
    }
    this.seen.add(slug)
    this.batch.push(read)
    this.characters += content.length
    if (this.batch.length >= MAX_POSTS || this.characters >= MAX_CHARACTERS) await this.flush()
  }

  async flush(): Promise<void> {
    const posts = new Map(this.batch.map((read) => [read.post.slug, read]))
    this.batch = []
    this.characters = 0
    if (posts.size === 0) return
    const taken = new Set((await this.taken([...posts.keys()])).map(({ slug }) => slug))
    const fresh = [...posts.values()].filter(({ post }) => !taken.has(post.slug))
    const made =
      fresh.length === 0
        ? []
        : await this.tx.any(
            insertPosts(
              fresh.map(({ post }) => post),
              this.author,
            ),
          )
    const free = new Set(made.map(({ slug }) => slug))
    // Editors have created posts with these slugs meanwhile.
    const late = fresh.filter(({ post }) => !free.has(post.slug)).map(({ post }) => post.slug)
    if (late.length > 0) await this.taken(late)
    this.counts.created += made.length
    const there = [...posts.values()].filter(({ post }) => !free.has(post.slug))
    await this.setTags(posts, [...made, ...(await this.overwrite(there))])
  }

  /** Which of these slugs exist. @throws fail('import.conflict') when none may. */
  private async taken(slugs: readonly string[]): Promise<readonly Slugged[]> {
    const taken = await this.tx.any(takenSlugs(slugs))
    const first = slugs.find((slug) => taken.some((one) => one.slug === slug))
    if (this.onConflict === 'fail' && first !== undefined) throw fail('import.conflict', { slug: first })
    return taken
  }

  private async overwrite(there: readonly ReadPost[]): Promise<readonly Slugged[]> {
    if (there.length === 0 || this.onConflict !== 'overwrite') {
      this.counts.skipped += there.length
      return []
    }
    const written = await this.tx.any(overwritePosts(there.map(({ post }) => post)))
    this.counts.updated += written.length
    return written
  }

  private async setTags(posts: ReadonlyMap<string, ReadPost>, written: readonly Slugged[]): Promise<void> {
    const tagsOf = ({ slug }: Slugged) => posts.get(slug)!.tags
    const missing = written.flatMap(tagsOf).filter(({ slug }) => !this.tagIds.has(slug))
    // A tag can lose its name to a concurrent one; the next round finds that one.
    for (let left = missing; left.length > 0; left = left.filter(({ slug }) => !this.tagIds.has(slug))) {
      for (const { id, slug } of await this.tx.any(neededTags(left))) this.tagIds.set(slug, id)
    }
    const links = written.flatMap((post) =>
      tagsOf(post).map(({ slug }) => ({ postId: post.id, tagId: this.tagIds.get(slug)! })),
    )
    if (links.length > 0 || this.onConflict === 'overwrite')
      await this.tx.run(
        setAllTags(
          written.map(({ id }) => id),
          links,
        ),
      )
  }
}
