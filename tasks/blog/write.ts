import { announcePosts } from '../../sql/blog/publishing.ts'
import { keepRevisions } from '../../sql/blog/revisions.ts'
import {
  findOrCreateTags,
  insertPosts,
  lockPostsBySlug,
  overwritePosts,
  type SluggedRow,
  setTagsOfPosts,
} from '../../sql/blog/transfer.ts'
import type { Queries } from '../../sql/db.ts'
import { fail } from '../../sql/errors.ts'
import type { ImportReport } from './import-report.ts'
import type { ParsedPost } from './interpret.ts'
import type { OnConflict } from './shapes.ts'

export interface Author {
  readonly id: number | null
  readonly name: string | null
}

/** A post to write, and the file that contains it. */
export interface FilePost extends ParsedPost {
  readonly file: string
}

const EXISTING_REASON = 'A post with this slug already exists'
const REPEATED_REASON = 'Another post of this import has the same slug'

// Maximum number of posts per batch, and of characters in their contents.
const MAX_POSTS_PER_BATCH = 200
const MAX_CHARACTERS_PER_BATCH = 2_000_000

/** Writes the posts of one import in batches, in one transaction. */
export class PostWriter {
  private readonly tx: Queries
  private readonly author: Author
  private readonly onConflict: OnConflict
  private readonly report: ImportReport
  private readonly maxRevisions: number
  private readonly seenSlugs = new Set<string>()
  private readonly tagIds = new Map<string, number>()
  /** The ids of the written posts. */
  readonly written: number[] = []
  private batch: FilePost[] = []
  private characters = 0

  constructor(
    tx: Queries,
    author: Author,
    onConflict: OnConflict,
    report: ImportReport,
    maxRevisions: number,
  ) {
    this.tx = tx
    this.author = author
    this.onConflict = onConflict
    this.report = report
    this.maxRevisions = maxRevisions
  }

  async add(read: FilePost): Promise<void> {
    const { slug, content } = read.post
    // A post never replaces another one of the same import.
    if (this.seenSlugs.has(slug)) {
      if (this.onConflict === 'fail') throw fail('import.conflict', { slug })
      return this.report.addConflict(read.file, slug, REPEATED_REASON)
    }
    this.seenSlugs.add(slug)
    this.batch.push(read)
    this.characters += content.length
    if (this.batch.length >= MAX_POSTS_PER_BATCH || this.characters >= MAX_CHARACTERS_PER_BATCH)
      await this.flush()
  }

  async flush(): Promise<void> {
    const posts = new Map(this.batch.map((read) => [read.post.slug, read]))
    this.batch = []
    this.characters = 0
    if (posts.size === 0) return
    const locked = await this.lockExistingPosts([...posts.keys()])
    const taken = new Set(locked.map(({ slug }) => slug))
    const newPosts = [...posts.values()].filter(({ post }) => !taken.has(post.slug))
    const created =
      newPosts.length === 0
        ? []
        : await this.tx.any(
            insertPosts(
              newPosts.map(({ post }) => post),
              this.author,
            ),
          )
    const createdSlugs = new Set(created.map(({ slug }) => slug))
    // Slugs of posts that editors have created since `lockExistingPosts` ran.
    const late = newPosts.filter(({ post }) => !createdSlugs.has(post.slug)).map(({ post }) => post.slug)
    const lockedLate = late.length > 0 ? await this.lockExistingPosts(late) : []
    this.report.addWritten('created', created.length)
    const existing = [...posts.values()].filter(({ post }) => !createdSlugs.has(post.slug))
    await this.setTags(posts, [...created, ...(await this.overwrite(existing, [...locked, ...lockedLate]))])
  }

  /** Locks and returns the posts with these slugs. @throws fail('import.conflict') if conflicts must fail. */
  private async lockExistingPosts(slugs: readonly string[]): Promise<readonly SluggedRow[]> {
    const taken = await this.tx.any(lockPostsBySlug(slugs))
    const first = slugs.find((slug) => taken.some((one) => one.slug === slug))
    if (this.onConflict === 'fail' && first !== undefined) throw fail('import.conflict', { slug: first })
    return taken
  }

  private async overwrite(
    existing: readonly FilePost[],
    taken: readonly SluggedRow[],
  ): Promise<readonly SluggedRow[]> {
    if (existing.length === 0 || this.onConflict !== 'overwrite') {
      for (const { file, post } of existing) this.report.addConflict(file, post.slug, EXISTING_REASON)
      return []
    }
    await this.tx.one(announcePosts(taken.map(({ id }) => id)))
    await this.keepRevisions(existing, taken)
    const written = await this.tx.any(overwritePosts(existing.map(({ post }) => post)))
    this.report.addWritten('updated', written.length)
    return written
  }

  private async keepRevisions(existing: readonly FilePost[], taken: readonly SluggedRow[]): Promise<void> {
    const ids = new Map(taken.map(({ id, slug }) => [slug, id]))
    const changes = existing.map(({ post, tags }) => {
      const { title, slug, content, excerpt, seo_title, seo_description, hero_image_url } = post
      const fields = { title, content, excerpt, seo_title, seo_description, hero_image_url }
      return { id: ids.get(slug)!, ...fields, tag_slugs: tags.map((tag) => tag.slug) }
    })
    const { author: editor, maxRevisions: max } = this
    await this.tx.run(keepRevisions(changes, { reason: 'import', editor, max }))
  }

  private async setTags(
    posts: ReadonlyMap<string, ParsedPost>,
    written: readonly SluggedRow[],
  ): Promise<void> {
    this.written.push(...written.map(({ id }) => id))
    const tagsOf = ({ slug }: SluggedRow) => posts.get(slug)!.tags
    const missing = written.flatMap(tagsOf).filter(({ slug }) => !this.tagIds.has(slug))
    // A concurrent insert may take a tag's slug or name. Then repeat: the next round finds that tag or uses another
    // name.
    for (
      let wanted = missing;
      wanted.length > 0;
      wanted = wanted.filter(({ slug }) => !this.tagIds.has(slug))
    ) {
      for (const { id, slug } of await this.tx.any(findOrCreateTags(wanted))) this.tagIds.set(slug, id)
    }
    const links = written.flatMap((post) =>
      tagsOf(post).map(({ slug }) => ({ postId: post.id, tagId: this.tagIds.get(slug)! })),
    )
    if (links.length > 0 || this.onConflict === 'overwrite')
      await this.tx.run(
        setTagsOfPosts(
          written.map(({ id }) => id),
          links,
        ),
      )
  }
}
