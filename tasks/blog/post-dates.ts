import type { PostStatus } from '../../sql/blog/posts.ts'
import type { ImportedPost } from '../../sql/blog/transfer.ts'
import { parseDate } from './dates.ts'
import { UnreadablePostError } from './front-matter.ts'
import { type PostPath, parseAddressDate } from './post-path.ts'
import { type FrontMatterKeys, toText } from './values.ts'
import { isFuture } from './visibility.ts'

/** Reads the dates of a post under the keys of common site generators. */

// Without separators and in lower case, the most specific first.
const PUBLICATION_KEYS =
  `publishdate pubdate pubdatetime publisheddate published publish publishedon publishedtime publishtime datepublished
  publicationdate`.split(/\s+/)
const DATE_KEYS = 'date datetime posted postedat posteddate postdate releasedate'.split(' ')
const CREATION_KEYS =
  'createdat created createddate createdate createdon createdtime datecreated creationdate'.split(' ')
const UPDATE_KEYS =
  `updatedat updated updateddate updatedate updatedon updatedtime dateupdated lastmod lastmodified lastmodifiedat
  lastmodifieddate lastmodifiedtime modified modifiedat modifieddate modifiedtime datemodified moddate moddatetime
  lastupdated lastupdatedat lastupdate lastupdate.date update revised edited`.split(/\s+/)

/** Matches placeholders for dates that generators compute. */
const COMPUTED_DATE = /^(git )?(last modified|created)$/i

/** Finds the first date among these keys; null if it is invalid. */
function findDate(
  keys: FrontMatterKeys,
  names: readonly string[],
): { name: string; date: string | null } | undefined {
  for (const name of names) {
    const text = toText(keys.get(name))
    // Some keys hold either a flag or a date.
    if (text === undefined || text === '' || COMPUTED_DATE.test(text) || keys.getFlag(name) !== undefined)
      continue
    return { name, date: parseDate(text) }
  }
  return undefined
}

/** Parses the first date among these keys. @throws UnreadablePostError if it is invalid. */
function parseFirstDate(keys: FrontMatterKeys, names: readonly string[]): string | undefined {
  const found = findDate(keys, names)
  if (found?.date === null) throw new UnreadablePostError(`${found.name}: is not a recognized date`)
  return found?.date
}

/**
 * Returns the time of publication that a file states; undefined if it states none. As in Hugo, `publishDate` decides about
 * the time to come, and `date` is what readers see.
 *
 * @throws UnreadablePostError if a date is invalid.
 */
export function parsePublicationDate(keys: FrontMatterKeys, path: PostPath): string | undefined {
  const own = parseFirstDate(keys, ['publishedat'])
  if (own !== undefined) return own
  const publication = parseFirstDate(keys, PUBLICATION_KEYS)
  const date = parseFirstDate(keys, DATE_KEYS)
  const isDecisive = [publication, date].some((one) => one !== undefined && isFuture(one))
  return (isDecisive ? (publication ?? date) : (date ?? publication)) ?? path.date ?? parseAddressDate(keys)
}

type Dates = Pick<ImportedPost, 'created_at' | 'updated_at' | 'published_at'>

/** Builds the dates of a post. `date` is its time of publication. @throws UnreadablePostError if one is invalid. */
export function parseDates(
  keys: FrontMatterKeys,
  status: PostStatus,
  date: string | undefined,
  isStrict: boolean,
): Dates {
  const own = parseFirstDate(keys, ['publishedat'])
  const unset = keys.get('publishedat') === null ? null : undefined
  const updated = isStrict
    ? parseFirstDate(keys, UPDATE_KEYS)
    : (findDate(keys, UPDATE_KEYS)?.date ?? undefined)
  // A scheduled post exists already.
  const past = date !== undefined && isFuture(date) ? undefined : date
  return {
    created_at: parseFirstDate(keys, CREATION_KEYS) ?? past,
    updated_at: updated,
    // An unpublished post gets a publication date only from `published_at`.
    published_at: status === 'published' ? date : (own ?? unset),
  }
}
