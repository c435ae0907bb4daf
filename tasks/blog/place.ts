import { readDate } from './dates.ts'
import { Unreadable } from './front-matter.ts'
import { LIMITS } from './limits.ts'
import { fitted, slugify, slugOfTitle } from './slugs.ts'
import type { Keys } from './values.ts'

/** What a file's name and folder say about its post. */
export interface Place {
  /** The file's name without date and extension, or its folder's; '' when there is none. */
  readonly stem: string
  /** The date that the name begins with. */
  readonly date: string | undefined
  /** Whether it is in a folder for drafts. */
  readonly inDrafts: boolean
}

const DATED = /^(\d{4}-\d{1,2}-\d{1,2})(?:[-_]+|$)/

/** Reads a path such as `_posts/2020-01-02-hello.md` or `posts/hello/index.md`. */
export function placeOf(path: string): Place {
  const parts = path.split('/').filter((part) => part !== '' && part !== '.')
  const file = (parts.pop() ?? '').replace(/\.(md|markdown)$/i, '')
  const folder = parts.at(-1) ?? ''
  const name = /^_?index$/i.test(file) && folder !== '' ? folder : file
  const dated = DATED.exec(name)
  const date = dated === null ? null : readDate(dated[1]!)
  return {
    stem: date === null ? name : name.slice(dated![0].length),
    date: date ?? undefined,
    inDrafts: parts.some((part) => /^_?drafts$/i.test(part)),
  }
}

/** The last part of an address; '' when the address is a pattern that a generator would fill in. */
function lastOf(address: string | undefined): string {
  if (address === undefined || /[{}]|:[a-z]/i.test(address.replace(/^https?:\/\//i, ''))) return ''
  if (/^(true|false|date|pretty|ordinal|weekdate|none)$/i.test(address)) return ''
  const parts = address
    .replace(/[?#].*$/, '')
    .split('/')
    .filter(Boolean)
  const last = (parts.pop() ?? '').replace(/\.(html?|md|markdown)$/i, '')
  return /^index$/i.test(last) ? (parts.pop() ?? '') : last
}

/** The parts of a path; none for one that contains a template. */
const partsOf = (path = ''): string[] => (path.includes('{{') ? [] : path.split('/').filter(Boolean))

/** The slug: as given, else from the address, file or title. @throws Unreadable when a given one is too long. */
export function slugOf(keys: Keys, title: string, place: Place): string {
  const given = slugify(partsOf(keys.text('slug')).at(-1) ?? '')
  if (given.length > LIMITS.slug) throw new Unreadable(`slug: must have at most ${LIMITS.slug} characters`)
  if (given !== '') return given
  for (const name of [lastOf(keys.text('permalink', 'path', 'url')), place.stem]) {
    const slug = fitted(slugify(name), LIMITS.slug)
    if (slug !== '') return slug
  }
  return slugOfTitle(title)
}

/** The day in an address such as `2020/01/02/hello`. */
export function dateOfAddress(keys: Keys): string | undefined {
  const [, year, month, day] =
    /(?:^|\/)(\d{4})\/(\d{1,2})\/(\d{1,2})\//.exec(keys.text('permalink', 'path', 'url') ?? '') ?? []
  return (year === undefined ? null : readDate(`${year}-${month}-${day}`)) ?? undefined
}
