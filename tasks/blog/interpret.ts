import type { PostStatus } from '../../sql/blog/posts.ts'
import type { ImportedPost, NeededTag } from '../../sql/blog/transfer.ts'
import { parseDate } from './dates.ts'
import { UnreadablePostError } from './front-matter.ts'
import { exceedsLength, LIMITS, shorten } from './limits.ts'
import { chooseSlug, type PostPath, parseAddressDate } from './post-path.ts'
import { IMAGE_ADDRESS_RULE, isSafeImageAddress, toPublicName } from './public.ts'
import { slugifyTag } from './slugs.ts'
import { collectTexts, type FrontMatterKeys, toText } from './values.ts'

/** A parsed post of an import, ready to write. */
export interface ParsedPost {
  readonly post: ImportedPost
  readonly tags: readonly NeededTag[]
}

/** Source of a post. */
export interface PostSource extends PostPath {
  /**
   * True for Millrace's own JSON: rejects overlong descriptive texts instead of shortening them, and requires a title.
   */
  readonly strict: boolean
  readonly defaultStatus: PostStatus
}

const STATUSES = new Map<string, PostStatus>([
  ['draft', 'draft'],
  ['drafts', 'draft'],
  ['pending', 'draft'],
  ['private', 'draft'],
  ['hidden', 'draft'],
  ['scheduled', 'draft'],
  ['future', 'draft'],
  ['unpublished', 'draft'],
  ['published', 'published'],
  ['publish', 'published'],
  ['public', 'published'],
  ['live', 'published'],
  ['archived', 'archived'],
  ['archive', 'archived'],
])

/** Builds a post from the keys of common site generators. @throws UnreadablePostError if they are invalid. */
export function interpretPost(keys: FrontMatterKeys, content: string, source: PostSource): ParsedPost {
  const slug = chooseSlug(keys, getRawText(keys, 'title') ?? '', source)
  try {
    const post = buildPost(keys, content, slug, source)
    for (const [name, value] of Object.entries(post))
      if (typeof value === 'string') assertStorable(name, value)
    return { post, tags: parseTags(keys) }
  } catch (error) {
    if (error instanceof UnreadablePostError) error.slug = slug
    throw error
  }
}

function buildPost(keys: FrontMatterKeys, content: string, slug: string, source: PostSource): ImportedPost {
  const status = parseStatus(keys, source)
  const parseOptionalText = (name: keyof typeof LIMITS, ...more: readonly string[]): string | null => {
    const own = getRawText(keys, name)
    return limitLength(name, own || (keys.getFirstText(...more) ?? own ?? null), !source.strict)
  }
  return {
    title: limitLength('title', chooseTitle(keys, content, slug, source), false)!,
    slug,
    content: limitLength('content', content, false)!,
    status,
    excerpt: parseOptionalText('excerpt', 'description', 'summary', 'customexcerpt'),
    seo_title: parseOptionalText('seo_title', 'seo.title', 'metatitle'),
    seo_description: parseOptionalText('seo_description', 'seo.description', 'metadescription'),
    hero_image_url: parseHeroImage(keys, source),
    author_name: parseAuthor(keys),
    ...parseDates(keys, status, source),
  }
}

/** Returns the untrimmed text of a key of Millrace's own format; undefined if absent. */
function getRawText(keys: FrontMatterKeys, name: string): string | undefined {
  const value = keys.get(name.replaceAll('_', ''))
  return typeof value === 'string' ? value : toText(value)
}

/** Rejects NUL and lone surrogates, which JSON and YAML can express but PostgreSQL can't store. @throws UnreadablePostError */
function assertStorable(name: string, text: string): void {
  if (text.includes('\0')) throw new UnreadablePostError(`${name}: must not contain a NUL character`)
  if (!text.isWellFormed()) throw new UnreadablePostError(`${name}: must not contain a lone surrogate`)
}

function limitLength(name: keyof typeof LIMITS, text: string | null, canShorten: boolean): string | null {
  if (text === null || !exceedsLength(text, LIMITS[name])) return text
  if (canShorten) return shorten(text, LIMITS[name])
  throw new UnreadablePostError(`${name}: must have at most ${LIMITS[name]} characters`)
}

/** Returns the given title, else the first heading, else the words of the slug. */
function chooseTitle(keys: FrontMatterKeys, content: string, slug: string, source: PostSource): string {
  const given = getRawText(keys, 'title')?.trim()
  if (given) return given
  if (source.strict) throw new UnreadablePostError('title: is required')
  const line = /^#[ \t]+(\S.*)$/m.exec(content.slice(0, 10_000))?.[1]
  const heading = line
    ?.slice(0, 2 * LIMITS.title)
    .trim()
    .replace(/(?:[ \t]#+|#+)$/, '')
    .trim()
  if (heading) return shorten(heading, LIMITS.title)
  const words = slug.replaceAll('-', ' ')
  return words[0]!.toUpperCase() + words.slice(1)
}

function parseStatus(keys: FrontMatterKeys, source: PostSource): PostStatus {
  if (keys.getFlag('draft') === true || keys.getFlag('published') === false) return 'draft'
  const given = keys.getFirstText('status')
  if (given !== undefined) {
    const known = STATUSES.get(given.toLowerCase())
    if (known === undefined) throw new UnreadablePostError('status: must be draft, published or archived')
    return known
  }
  if (source.inDrafts) return 'draft'
  return keys.getFlag('published') === true || keys.getFlag('draft') === false
    ? 'published'
    : source.defaultStatus
}

/** Matches placeholders for dates that generators compute. */
const COMPUTED_DATE = /^(git )?(last modified|created)$/i

/** Parses the first date among these keys. @throws UnreadablePostError if it is invalid. */
function parseFirstDate(keys: FrontMatterKeys, ...names: readonly string[]): string | undefined {
  for (const name of names) {
    const text = toText(keys.get(name))
    if (text === undefined || text === '' || COMPUTED_DATE.test(text)) continue
    // The key `published` holds either a flag or a date.
    if (name === 'published' && keys.getFlag(name) !== undefined) continue
    const date = parseDate(text)
    if (date === null) throw new UnreadablePostError(`${name}: is not a recognized date`)
    return date
  }
  return undefined
}

type Dates = Pick<ImportedPost, 'created_at' | 'updated_at' | 'published_at'>

function parseDates(keys: FrontMatterKeys, status: PostStatus, source: PostSource): Dates {
  const own = parseFirstDate(keys, 'publishedat')
  const date =
    own ??
    parseFirstDate(keys, 'date', 'publishdate', 'pubdate', 'published', 'publishedon') ??
    source.date ??
    parseAddressDate(keys)
  const created_at = parseFirstDate(keys, 'createdat', 'created') ?? date
  const unset = keys.get('publishedat') === null ? null : undefined
  return {
    created_at,
    updated_at: parseFirstDate(keys, 'updatedat', 'updated', 'lastmod', 'modified'),
    // An unpublished post gets a publication date only from `published_at`.
    published_at: status === 'published' ? date : (own ?? unset),
  }
}

// Matches paths without a scheme or a leading slash.
const RELATIVE_PATH = /^(?![a-z][a-z\d+.-]*:|[/\\])/i

/**
 * Returns the address of the hero image; null if there is none. Also null for a relative path, because imports contain
 * no images.
 */
function parseHeroImage(keys: FrontMatterKeys, { strict }: PostSource): string | null {
  const address = limitLength('hero_image_url', findHeroImage(keys), false)
  if (address === null || isSafeImageAddress(address)) return address
  if (strict || !RELATIVE_PATH.test(address))
    throw new UnreadablePostError(`hero_image_url: ${IMAGE_ADDRESS_RULE}`)
  return null
}

function findHeroImage(keys: FrontMatterKeys): string | null {
  const own = getRawText(keys, 'hero_image_url')
  if (own) return own
  for (const name of ['image', 'cover', 'coverimage', 'featureimage', 'featuredimage']) {
    const [url] = collectTexts(keys.get(name), 'image', 'url', 'src', 'path', 'relative')
    // A data URL embeds the image and has no address.
    if (url !== undefined && !url.startsWith('data:') && url !== 'true' && url !== 'false') return url
  }
  return null
}

/**
 * Returns the author's name: undefined if the post names no author, null if the name is null, empty or an email
 * address.
 */
function parseAuthor(keys: FrontMatterKeys): string | null | undefined {
  const own = keys.get('authorname') === null ? null : getRawText(keys, 'author_name')
  if (own !== undefined) return toPublicName(limitLength('author_name', own, false))
  const names = collectTexts([keys.get('author') ?? keys.get('authors')], 'name', 'slug')
  if (names.length === 0) return undefined
  const publicNames = names.filter((name) => toPublicName(name) !== null).join(', ')
  return toPublicName(limitLength('author_name', publicNames, true))
}

// Splits a list at commas or line feeds, or at white space if it has neither.
const splitText = (text: string): string[] =>
  text
    .split(/[,\n]/.test(text) ? /[,\n]/ : /\s+/)
    .map((item) => item.trim())
    .filter(Boolean)

function parseTags(keys: FrontMatterKeys): NeededTag[] {
  const found = new Map<string, NeededTag>()
  const add = (tag: NeededTag): void => void (found.has(tag.slug) || found.set(tag.slug, tag))
  for (const slug of collectTexts(keys.get('tagslugs')))
    add({ slug: slugifyTag(slug), name: slug.slice(0, LIMITS.tag_name) })
  for (const name of ['tags', 'tag', 'categories', 'category', 'taxonomies.tags', 'taxonomies.categories']) {
    const value = keys.get(name)
    const names = typeof value === 'string' ? splitText(value) : collectTexts(value, 'name', 'title', 'slug')
    for (const tag of names) {
      if (exceedsLength(tag, LIMITS.tag_name))
        throw new UnreadablePostError(`${name}: each must have at most ${LIMITS.tag_name} characters`)
      assertStorable(name, tag)
      add({ slug: slugifyTag(tag), name: tag })
    }
  }
  if (found.size > LIMITS.tags)
    throw new UnreadablePostError(`tags: must have at most ${LIMITS.tags} entries`)
  return [...found.values()]
}
