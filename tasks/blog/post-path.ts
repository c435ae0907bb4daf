import type { ChosenSlug } from './assign-slugs.ts'
import { parseDate } from './dates.ts'
import { UnreadablePostError } from './front-matter.ts'
import { LIMITS } from './limits.ts'
import { slugify, slugifyTitle, truncateSlug } from './slugs.ts'
import type { FrontMatterKeys } from './values.ts'

/** Properties of a post that follow from its file's path. */
export interface PostPath {
  /** Name of the file without date and extension, or of its folder if the file is `index`; may be empty. */
  readonly stem: string
  /** Date at the start of the file name; undefined if there is none. */
  readonly date: string | undefined
  /** True if a parent folder is one for drafts, such as `_drafts`. */
  readonly inDrafts: boolean
}

const DATE_PREFIX = /^(\d{4}-\d{1,2}-\d{1,2})(?:[-_]+|$)/

/** Parses a path such as `_posts/2020-01-02-hello.md` or `posts/hello/index.md`. */
export function parsePostPath(path: string): PostPath {
  const parts = path.split('/').filter((part) => part !== '' && part !== '.')
  const file = (parts.pop() ?? '').replace(/\.(md|markdown|mdx)$/i, '')
  const folder = parts.at(-1) ?? ''
  // A translation of Hugo's is `index.de.md`.
  const [isIndex, language = ''] = /^_?index(\.[a-z]{2}(?:-[a-z]{2,4})?)?$/i.exec(file) ?? []
  const name = isIndex !== undefined && folder !== '' ? `${folder}${language}` : file
  const dated = DATE_PREFIX.exec(name)
  const date = dated === null ? null : parseDate(dated[1]!)
  return {
    stem: date === null ? name : name.slice(dated![0].length),
    date: date ?? undefined,
    inDrafts: parts.some((part) => /^_?(?:drafts?|unpublished|private)$/i.test(part)),
  }
}

/**
 * Returns the last segment of an address; empty if the address is absent or is a generator's pattern, such as
 * `/:year/:title`.
 */
function lastSegmentOf(address: string | undefined): string {
  if (address === undefined || /[{}]|:[a-z]/i.test(address.replace(/^https?:\/\//i, ''))) return ''
  if (/^(true|false|date|pretty|ordinal|weekdate|none)$/i.test(address)) return ''
  const parts = address
    .replace(/[?#].*$/, '')
    .split('/')
    .filter(Boolean)
  const last = (parts.pop() ?? '').replace(/\.(html?|md|markdown|mdx)$/i, '')
  return /^index$/i.test(last) ? (parts.pop() ?? '') : last
}

/** Splits a path into segments; none if it contains a template. */
const splitPath = (path = ''): string[] => (path.includes('{{') ? [] : path.split('/').filter(Boolean))

/**
 * Returns the given slug, else one from the address, the file name or the title. A slug with slashes is an address.
 *
 * @throws UnreadablePostError if the given slug is too long.
 */
export function chooseSlug(keys: FrontMatterKeys, title: string, place: PostPath): ChosenSlug {
  const parts = splitPath(keys.getFirstText('slug'))
  const given = slugify(parts.at(-1) ?? '')
  if (given.length > LIMITS.slug)
    throw new UnreadablePostError(`slug: must have at most ${LIMITS.slug} characters`)
  if (given !== '') return { slug: given, isGiven: parts.length === 1 }
  for (const name of [lastSegmentOf(keys.getFirstText('permalink', 'path', 'url')), place.stem]) {
    const slug = truncateSlug(slugify(name), LIMITS.slug)
    if (slug !== '') return { slug, isGiven: false }
  }
  return { slug: slugifyTitle(title), isGiven: false }
}

/** Parses the day in an address such as `2020/01/02/hello`; undefined if there is none. */
export function parseAddressDate(keys: FrontMatterKeys): string | undefined {
  const [, year, month, day] =
    /(?:^|\/)(\d{4})\/(\d{1,2})\/(\d{1,2})\//.exec(keys.getFirstText('permalink', 'path', 'url') ?? '') ?? []
  return (year === undefined ? null : parseDate(`${year}-${month}-${day}`)) ?? undefined
}
