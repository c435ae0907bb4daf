import type { PostStatus } from '../../sql/blog/posts.ts'
import type { ImportedPost, NeededTag } from '../../sql/blog/transfer.ts'
import { UnreadablePostError } from './front-matter.ts'
import { findHeading } from './heading.ts'
import { parseHeroImage } from './hero-image.ts'
import { exceedsLength, LIMITS, shorten } from './limits.ts'
import { parseDates, parsePublicationDate } from './post-dates.ts'
import { chooseSlug, type PostPath } from './post-path.ts'
import { toPublicName } from './public.ts'
import { parseTags } from './tags.ts'
import { assertStorable, collectTexts, type FrontMatterKeys, toText } from './values.ts'
import { parseStatus } from './visibility.ts'

/** A parsed post of an import, ready to write. */
export interface ParsedPost {
  readonly post: ImportedPost
  readonly tags: readonly NeededTag[]
  /** True if the post names its slug, see `assignSlugs`. */
  readonly hasGivenSlug: boolean
}

/** Source of a post. */
export interface PostSource extends PostPath {
  /**
   * True for Millrace's own JSON: rejects overlong descriptive texts instead of shortening them, and requires a title.
   */
  readonly strict: boolean
  readonly defaultStatus: PostStatus
}

/** Builds a post from the keys of common site generators. @throws UnreadablePostError if they are invalid. */
export function interpretPost(keys: FrontMatterKeys, content: string, source: PostSource): ParsedPost {
  const { slug, isGiven } = chooseSlug(keys, getRawText(keys, 'title') ?? '', source)
  try {
    const post = buildPost(keys, content, slug, source)
    for (const [name, value] of Object.entries(post))
      if (typeof value === 'string') assertStorable(name, value)
    return { post, tags: parseTags(keys, source.strict), hasGivenSlug: isGiven }
  } catch (error) {
    if (error instanceof UnreadablePostError) error.slug = slug
    throw error
  }
}

function buildPost(keys: FrontMatterKeys, content: string, slug: string, source: PostSource): ImportedPost {
  const date = parsePublicationDate(keys, source)
  const status = parseStatus(keys, source, date)
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
    hero_image_url: parseHeroImage(keys, source.strict),
    author_name: parseAuthor(keys),
    ...parseDates(keys, status, date, source.strict),
  }
}

/** Returns the untrimmed text of a key of Millrace's own format; undefined if absent. */
function getRawText(keys: FrontMatterKeys, name: string): string | undefined {
  const value = keys.get(name.replaceAll('_', ''))
  return typeof value === 'string' ? value : toText(value)
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
  const heading = findHeading(content)
  if (heading) return shorten(heading, LIMITS.title)
  const words = slug.replaceAll('-', ' ')
  return words[0]!.toUpperCase() + words.slice(1)
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
