import type { ImportedPost, NeededTag } from '../../sql/blog/transfer.ts'
import type { PostStatus } from '../../sql/blog.ts'
import { readDate } from './dates.ts'
import { Unreadable } from './front-matter.ts'
import { isLonger, LIMITS, shortened } from './limits.ts'
import { dateOfAddress, type Place, slugOf } from './place.ts'
import { isPicture, PICTURE, publicName } from './public.ts'
import { slugOfTag } from './slugs.ts'
import { type Keys, textOf, textsOf } from './values.ts'

/** A post from an import, ready to be written. */
export interface ReadPost {
  readonly post: ImportedPost
  readonly tags: readonly NeededTag[]
}

/** Where keys and values come from: our own JSON is read strictly, front matter of others leniently. */
export interface Source extends Place {
  /** Whether descriptive texts that are too long are refused, or else shortened. */
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

/** Interprets the keys of the common site generators. @throws Unreadable with the reason when they make no post. */
export function interpret(keys: Keys, content: string, source: Source): ReadPost {
  const slug = slugOf(keys, exact(keys, 'title') ?? '', source)
  try {
    const post = postOf(keys, content, slug, source)
    for (const [name, value] of Object.entries(post))
      if (typeof value === 'string') assertStorable(name, value)
    return { post, tags: tagsOf(keys) }
  } catch (error) {
    if (error instanceof Unreadable) error.slug = slug
    throw error
  }
}

function postOf(keys: Keys, content: string, slug: string, source: Source): ImportedPost {
  const status = statusOf(keys, source)
  const describe = (name: keyof typeof LIMITS, ...more: readonly string[]): string | null => {
    const own = exact(keys, name)
    return limited(name, own || (keys.text(...more) ?? own ?? null), !source.strict)
  }
  return {
    title: limited('title', titleOf(keys, content, slug, source), false)!,
    slug,
    content: limited('content', content, false)!,
    status,
    excerpt: describe('excerpt', 'description', 'summary', 'customexcerpt'),
    seo_title: describe('seo_title', 'seo.title', 'metatitle'),
    seo_description: describe('seo_description', 'seo.description', 'metadescription'),
    hero_image_url: pictureOf(keys, source),
    author_name: authorOf(keys),
    ...datesOf(keys, status, source),
  }
}

/** The text of one of our own keys, not trimmed. */
function exact(keys: Keys, name: string): string | undefined {
  const value = keys.get(name.replaceAll('_', ''))
  return typeof value === 'string' ? value : textOf(value)
}

/** Refuses what PostgreSQL can't store but JSON and YAML can express: NUL and lone surrogates. */
function assertStorable(name: string, text: string): void {
  if (text.includes('\0')) throw new Unreadable(`${name}: must not hold the character NUL`)
  if (!text.isWellFormed()) throw new Unreadable(`${name}: must not hold half a character`)
}

function limited(name: keyof typeof LIMITS, text: string | null, cut: boolean): string | null {
  if (text === null || !isLonger(text, LIMITS[name])) return text
  if (cut) return shortened(text, LIMITS[name])
  throw new Unreadable(`${name}: must have at most ${LIMITS[name]} characters`)
}

/** As given, else the first heading, else the words of the slug. */
function titleOf(keys: Keys, content: string, slug: string, source: Source): string {
  const given = exact(keys, 'title')?.trim()
  if (given) return given
  if (source.strict) throw new Unreadable('title: is required')
  const line = /^#[ \t]+(\S.*)$/m.exec(content.slice(0, 10_000))?.[1]
  const heading = line
    ?.slice(0, 2 * LIMITS.title)
    .trim()
    .replace(/(?:[ \t]#+|#+)$/, '')
    .trim()
  if (heading) return shortened(heading, LIMITS.title)
  const words = slug.replaceAll('-', ' ')
  return words[0]!.toUpperCase() + words.slice(1)
}

function statusOf(keys: Keys, source: Source): PostStatus {
  if (keys.flag('draft') === true || keys.flag('published') === false) return 'draft'
  const given = keys.text('status')
  if (given !== undefined) {
    const known = STATUSES.get(given.toLowerCase())
    if (known === undefined) throw new Unreadable('status: must be draft, published or archived')
    return known
  }
  if (source.inDrafts) return 'draft'
  return keys.flag('published') === true || keys.flag('draft') === false ? 'published' : source.defaultStatus
}

/** Values that the generators compute themselves. */
const COMPUTED = /^(git )?(last modified|created)$/i

/** The date of the first of the keys that has one. */
function dateOf(keys: Keys, ...names: readonly string[]): string | undefined {
  for (const name of names) {
    const text = textOf(keys.get(name))
    if (text === undefined || text === '' || COMPUTED.test(text)) continue
    // This key says whether a post is published, or when.
    if (name === 'published' && keys.flag(name) !== undefined) continue
    const date = readDate(text)
    if (date === null) throw new Unreadable(`${name}: can't be read as a date`)
    return date
  }
  return undefined
}

type Dates = Pick<ImportedPost, 'created_at' | 'updated_at' | 'published_at'>

function datesOf(keys: Keys, status: PostStatus, source: Source): Dates {
  const own = dateOf(keys, 'publishedat')
  const date =
    own ??
    dateOf(keys, 'date', 'publishdate', 'pubdate', 'published', 'publishedon') ??
    source.date ??
    dateOfAddress(keys)
  const created_at = dateOf(keys, 'createdat', 'created') ?? date
  const none = keys.get('publishedat') === null ? null : undefined
  return {
    created_at,
    updated_at: dateOf(keys, 'updatedat', 'updated', 'lastmod', 'modified'),
    // An unpublished post has a creation date but no publication date, unless one is given explicitly.
    published_at: status === 'published' ? date : (own ?? none),
  }
}

// Neither a URL with a scheme nor an absolute path.
const BESIDE = /^(?![a-z][a-z\d+.-]*:|[/\\])/i

/** For generators an image may be a file beside the post; such images are left out here. */
function pictureOf(keys: Keys, { strict }: Source): string | null {
  const address = limited('hero_image_url', heroOf(keys), false)
  if (address === null || isPicture(address)) return address
  if (strict || !BESIDE.test(address)) throw new Unreadable(`hero_image_url: ${PICTURE}`)
  return null
}

function heroOf(keys: Keys): string | null {
  const own = exact(keys, 'hero_image_url')
  if (own) return own
  for (const name of ['image', 'cover', 'coverimage', 'featureimage', 'featuredimage']) {
    const [url] = textsOf(keys.get(name), 'image', 'url', 'src', 'path', 'relative')
    // An embedded image is not an address.
    if (url !== undefined && !url.startsWith('data:') && url !== 'true' && url !== 'false') return url
  }
  return null
}

/** The author; null when it is nobody or an email address; undefined when it is not given. */
function authorOf(keys: Keys): string | null | undefined {
  const own = keys.get('authorname') === null ? null : exact(keys, 'author_name')
  if (own !== undefined) return publicName(limited('author_name', own, false))
  const names = textsOf([keys.get('author') ?? keys.get('authors')], 'name', 'slug')
  if (names.length === 0) return undefined
  const shown = names.filter((name) => publicName(name) !== null).join(', ')
  return publicName(limited('author_name', shown, true))
}

// A list given as text: split at commas or line feeds, else at white space.
const splitText = (text: string): string[] =>
  text
    .split(/[,\n]/.test(text) ? /[,\n]/ : /\s+/)
    .map((item) => item.trim())
    .filter(Boolean)

function tagsOf(keys: Keys): NeededTag[] {
  const found = new Map<string, NeededTag>()
  const add = (tag: NeededTag): void => void (found.has(tag.slug) || found.set(tag.slug, tag))
  for (const slug of textsOf(keys.get('tagslugs')))
    add({ slug: slugOfTag(slug), name: slug.slice(0, LIMITS.tag_name) })
  for (const name of ['tags', 'tag', 'categories', 'category', 'taxonomies.tags', 'taxonomies.categories']) {
    const value = keys.get(name)
    const names = typeof value === 'string' ? splitText(value) : textsOf(value, 'name', 'title', 'slug')
    for (const tag of names) {
      if (isLonger(tag, LIMITS.tag_name))
        throw new Unreadable(`${name}: must have at most ${LIMITS.tag_name} characters each`)
      assertStorable(name, tag)
      add({ slug: slugOfTag(tag), name: tag })
    }
  }
  if (found.size > LIMITS.tags) throw new Unreadable(`tags: must be at most ${LIMITS.tags}`)
  return [...found.values()]
}
