import type { PostStatus } from '../../sql/blog/posts.ts'
import { parseDate } from './dates.ts'
import { UnreadablePostError } from './front-matter.ts'
import { type FrontMatterKeys, toText } from './values.ts'

/** Decides which status a post of another generator gets. In doubt, the post does not become public. */

const STATUSES = new Map<string, PostStatus | 'scheduled'>([
  ...[
    'draft drafts auto-draft pending private hidden unlisted unpublished protected password trash trashed',
    'deleted expired review in-review wip idea skip sent',
  ]
    .join(' ')
    .split(' ')
    .map((name) => [name, 'draft'] as const),
  ['scheduled', 'scheduled'],
  ['future', 'scheduled'],
  ['published', 'published'],
  ['publish', 'published'],
  ['public', 'published'],
  ['live', 'published'],
  ['featured', 'published'],
  ['archived', 'archived'],
  ['archive', 'archived'],
])

// Keys that hide a post, unless their value is empty or false.
const HIDING_KEYS = ['draft', 'isdraft', 'private', 'unlisted', 'hidden', 'headless', 'password', 'protected']
// Keys that hide a post if their value is false. Some of them may hold a date instead.
const SHOWING_KEYS = [
  'published',
  'publish',
  'ispublished',
  'public',
  'listed',
  'share',
  'dgpublish',
  'permalink',
]
// Keys of Ghost, WordPress and Hugo that name who sees a page.
const AUDIENCE_KEYS = ['visibility', 'access', 'build.render', 'build.list']
const PUBLIC_AUDIENCE = /^(public|published|always|local|all|everyone|true)$/i
const EXPIRY_KEYS = [
  'expirydate',
  'unpublishdate',
  'unpublishat',
  'unpublishedat',
  'expires',
  'expiresat',
  'expireson',
  'expiration',
  'expirationdate',
]

/**
 * Returns the status that a file states, else the default. `date` is the time of publication, if known.
 * @throws UnreadablePostError if the status is unknown.
 */
export function parseStatus(
  keys: FrontMatterKeys,
  { inDrafts, defaultStatus }: { readonly inDrafts: boolean; readonly defaultStatus: PostStatus },
  date: string | undefined,
): PostStatus {
  const given = parseGivenStatus(keys)
  if (isHidden(keys)) return 'draft'
  if (given === 'scheduled') return date !== undefined && isFuture(date) ? 'published' : 'draft'
  if (given !== undefined) return given
  if (keys.getFlag('archived') === true) return 'archived'
  if (inDrafts) return 'draft'
  return keys.getFlag('published') === true || keys.getFlag('draft') === false ? 'published' : defaultStatus
}

/** True for a time to come. */
export const isFuture = (date: string): boolean => Date.parse(date) > Date.now()

function parseGivenStatus(keys: FrontMatterKeys): PostStatus | 'scheduled' | undefined {
  const given = keys.getFirstText('status', 'poststatus')
  if (given === undefined) return undefined
  const known = STATUSES.get(given.toLowerCase().replace(/[ _]+/g, '-'))
  if (known === undefined) throw new UnreadablePostError('status: must be draft, published or archived')
  return known
}

function isHidden(keys: FrontMatterKeys): boolean {
  return (
    HIDING_KEYS.some((name) => hasValue(keys, name) && keys.getFlag(name) !== false) ||
    SHOWING_KEYS.some((name) => keys.getFlag(name) === false) ||
    AUDIENCE_KEYS.some(
      (name) => hasValue(keys, name) && !PUBLIC_AUDIENCE.test(toText(keys.get(name)) ?? ''),
    ) ||
    EXPIRY_KEYS.some((name) => isPast(keys, name))
  )
}

const hasValue = (keys: FrontMatterKeys, name: string): boolean => String(keys.get(name) ?? '').trim() !== ''

/** True if a key holds a past or an unreadable time. */
function isPast(keys: FrontMatterKeys, name: string): boolean {
  if (!hasValue(keys, name) || keys.getFlag(name) === false) return false
  const date = parseDate(toText(keys.get(name)) ?? '')
  return date === null || !isFuture(date)
}
