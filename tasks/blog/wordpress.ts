import { parseMarkup } from '../formats/markup.ts'
import type { ForeignPost } from './ghost.ts'

/** Reads the posts of an export of WordPress (WXR): an RSS feed with more elements. */

interface WordPressItem {
  /** Texts of the elements, by their names. */
  readonly fields: Map<string, string>
  readonly tags: { readonly name: string; readonly slug: string }[]
  readonly meta: Map<string, string>
}

interface WordPressExport {
  readonly items: readonly WordPressItem[]
  /** Names of authors by their logins. */
  readonly authors: ReadonlyMap<string, string>
}

/** Returns the posts, pages and attachments of an export in its order; null if the text is no export of WordPress. */
export function listWordPressPosts(xml: string): readonly ForeignPost[] | null {
  if (!/<rss\b/i.test(xml.slice(0, 10_000)) || !xml.includes('<wp:')) return null
  const { items, authors } = readExport(xml)
  const pictures = new Map(
    items.flatMap(({ fields }) => {
      const [id, address] = [fields.get('wp:post_id'), fields.get('wp:attachment_url')]
      return id === undefined || address === undefined ? [] : [[id, address] as const]
    }),
  )
  return items.map((item) => toPost(item, authors, pictures))
}

function toPost(
  { fields, tags, meta }: WordPressItem,
  authors: WordPressExport['authors'],
  pictures: ReadonlyMap<string, string>,
): ForeignPost {
  const login = fields.get('dc:creator')
  return {
    keys: {
      title: fields.get('title'),
      slug: decodeSlug(fields.get('wp:post_name') ?? ''),
      status: fields.get('wp:status'),
      password: fields.get('wp:post_password'),
      date: findDate(fields, 'wp:post_date_gmt', 'wp:post_date', 'pubDate'),
      updated: findDate(fields, 'wp:post_modified_gmt', 'wp:post_modified'),
      excerpt: fields.get('excerpt:encoded') || null,
      seo_title: meta.get('_yoast_wpseo_title') ?? null,
      seo_description: meta.get('_yoast_wpseo_metadesc') ?? null,
      image: pictures.get(meta.get('_thumbnail_id') ?? ''),
      author: login === undefined ? undefined : (authors.get(login) ?? login),
      tags,
    },
    content: dropBlockMarks(fields.get('content:encoded') ?? ''),
    isPost: (fields.get('wp:post_type') ?? 'post') === 'post',
  }
}

/** Decodes the slug, in which WordPress escapes letters beyond ASCII. */
function decodeSlug(slug: string): string {
  try {
    return decodeURIComponent(slug)
  } catch {
    // A slug cut within an escape still names the post.
    return slug
  }
}

/** Returns the first date that is set: drafts have zeros. */
const findDate = (fields: ReadonlyMap<string, string>, ...names: readonly string[]): string | undefined =>
  names
    .map((name) => fields.get(name)?.trim())
    .find((text) => text && !text.startsWith('0000') && !/-0001/.test(text))

/** Drops the comments with which the block editor marks its blocks. */
const dropBlockMarks = (html: string): string => html.replace(/<!-- \/?wp:[\s\S]{0,20000}?-->\n?/g, '')

function readExport(xml: string): WordPressExport {
  const items: WordPressItem[] = []
  const authors = new Map<string, string>()
  const open: string[] = []
  let text = ''
  let category: Readonly<Record<string, string>> = {}
  let pair: Record<string, string> = {}
  parseMarkup(xml, 'xml', {
    open: (name, attributes) => {
      open.push(name)
      text = ''
      if (name === 'item') items.push({ fields: new Map(), tags: [], meta: new Map() })
      else if (name === 'category') category = attributes
      else if (name === 'wp:postmeta' || name === 'wp:author') pair = {}
    },
    text: (data) => {
      text += data
    },
    close: (name) => {
      open.pop()
      const item = items.at(-1)
      const parent = open.at(-1)
      if (parent === 'wp:postmeta' || parent === 'wp:author') pair[name] = text
      else if (name === 'wp:postmeta') item?.meta.set(pair['wp:meta_key'] ?? '', pair['wp:meta_value'] ?? '')
      else if (name === 'wp:author')
        authors.set(
          pair['wp:author_login'] ?? '',
          pair['wp:author_display_name'] || (pair['wp:author_login'] ?? ''),
        )
      else if (parent !== 'item' || item === undefined) return
      else if (name !== 'category') item.fields.set(name, text)
      else if (/^(post_tag|category)$/.test(category.domain ?? '') && text.trim() !== '')
        item.tags.push({ name: text.trim(), slug: decodeSlug(category.nicename ?? '') })
    },
  })
  return { items, authors }
}
