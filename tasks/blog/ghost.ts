import { isMapping } from './front-matter.ts'

/** Reads the posts of an export of Ghost: rows of its tables, which refer to each other by id. */

type Row = Readonly<Record<string, unknown>>

/** A post under the keys that front matter has. */
export interface ForeignPost {
  readonly keys: Row
  readonly content: string
  /** True for pages and other content that a blog does not list. */
  readonly isPost: boolean
}

/** Returns the posts of an export of Ghost in its order; null for other JSON. */
export function listGhostPosts(value: unknown): readonly ForeignPost[] | null {
  const data = findTables(value)
  if (data === null) return null
  const rowsOf = (table: string): readonly Row[] => toRows(data[table])
  const joinRows = (links: string, table: string, idKey: string): ReadonlyMap<string, readonly Row[]> =>
    groupByPost(rowsOf(links), new Map(rowsOf(table).map((row) => [String(row.id), row])), idKey)
  const tags = joinRows('posts_tags', 'tags', 'tag_id')
  const authors = joinRows('posts_authors', 'users', 'author_id')
  const users = new Map(rowsOf('users').map((row) => [String(row.id), row]))
  const meta = new Map(rowsOf('posts_meta').map((row) => [String(row.post_id), row]))
  return rowsOf('posts').map((post) => {
    const id = String(post.id)
    const { meta_title, meta_description } = { ...post, ...meta.get(id) } as Row
    const names = authors.get(id) ?? [users.get(String(post.author_id))]
    const { title, slug, status, visibility, created_at, updated_at, published_at } = post
    const keys = { title, slug, status, visibility, created_at, updated_at, published_at }
    return {
      keys: {
        ...keys,
        excerpt: post.custom_excerpt ?? null,
        seo_title: meta_title ?? null,
        seo_description: meta_description ?? null,
        image: dropSite(post.feature_image ?? post.image),
        // Ghost hides internal tags, whose names begin with `#`.
        tags: (tags.get(id) ?? [])
          .filter(({ visibility }) => visibility !== 'internal')
          .map(({ name, slug }) => ({ name, slug })),
        authors: names.flatMap((user) => (user === undefined ? [] : [{ name: user.name }])),
      },
      content: String(dropSite(findContent(post)) ?? ''),
      isPost: (post.type ?? 'post') === 'post' && !['1', 'true'].includes(String(post.page ?? '')),
    }
  })
}

function findTables(value: unknown): Row | null {
  const root = isMapping(value) && Array.isArray(value.db) ? (value.db[0] as unknown) : value
  const data = isMapping(root) ? root.data : null
  return isMapping(data) && Array.isArray(data.posts) ? data : null
}

const toRows = (value: unknown): readonly Row[] => (Array.isArray(value) ? value.filter(isMapping) : [])

/** Groups the rows that a table of links joins to posts, in the order of the links. */
function groupByPost(
  links: readonly Row[],
  rows: ReadonlyMap<string, Row>,
  idKey: string,
): ReadonlyMap<string, readonly Row[]> {
  const found = new Map<string, Row[]>()
  const ordered = links.toSorted((a, b) => Number(a.sort_order ?? 0) - Number(b.sort_order ?? 0))
  for (const link of ordered) {
    const row = rows.get(String(link[idKey]))
    const id = String(link.post_id)
    if (row === undefined) continue
    const group = found.get(id)
    if (group === undefined) found.set(id, [row])
    else group.push(row)
  }
  return found
}

/** Replaces the placeholder for the address of the site, so that paths begin at its root. */
const dropSite = (value: unknown): unknown =>
  typeof value === 'string' ? value.replaceAll('__GHOST_URL__', '') : value

/** Returns the Markdown of a post, if it is written in Markdown, else its HTML. */
function findContent({ markdown, mobiledoc, html, plaintext }: Row): string {
  const texts = [markdown, findMarkdownCard(mobiledoc), html, plaintext]
  return texts.find((text): text is string => typeof text === 'string' && text !== '') ?? ''
}

/** Returns the Markdown of a document that is a single card of it; null for other documents. */
function findMarkdownCard(mobiledoc: unknown): string | null {
  if (typeof mobiledoc !== 'string') return null
  try {
    const { cards, sections } = JSON.parse(mobiledoc) as { cards?: unknown[]; sections?: unknown[] }
    const [card] = cards ?? []
    if (cards?.length !== 1 || (sections?.length ?? 0) > 2 || !Array.isArray(card)) return null
    const [kind, { markdown }] = card as [string, { markdown?: unknown }]
    return /^(card-)?markdown$/.test(kind) && typeof markdown === 'string' ? markdown : null
  } catch {
    // A damaged document has its HTML, too.
    return null
  }
}
