import type { Who } from './requests.ts'

/**
 * Calls whose cost grows more than `limits.ts` allows, with the reasons. A call that has been fixed must leave the
 * first list, or the test fails, so the list shows the remaining work.
 */

/** Maps a reason and a path to calls with their callers. */
type CallsByReason = Readonly<Record<string, Readonly<Record<string, readonly `${string}[${Who}]`[]>>>>

const REASON_COUNTED =
  'It counts up to 10,000 matching rows, or skips as many index entries before the last page'

const REASON_SCANNED = 'It sorts or filters up to 100,000 jobs of each state'

const KNOWN_BY_REASON: CallsByReason = {
  'It returns all rows, read in batches through an index': {
    '/api/v1/blog/export': ['the whole of it [admin]'],
  },
  'It returns up to 50,000 addresses, and a smaller table has fewer': {
    '/api/v1/blog/sitemap.xml': ['[nobody]'],
  },
  [REASON_COUNTED]: {
    '/api/v1/orgs/memberships': ['last page [admin]'],
    '/api/v1/blog/posts': ['last page [nobody]'],
    '/api/v1/documents': ['last page [big]'],
  },
  'It counts the failures of the requested period, up to 10,000': {
    '/api/v1/jobs/failures': ['[admin]', 'of a week [admin]'],
  },
  [REASON_SCANNED]: {
    '/api/v1/jobs/search': ['[big]'],
  },
  'It returns up to 1,000 rows, and a smaller table has fewer': {
    '/api/v1/documents/:id/pages': ['of the longest document [big]'],
    '/api/v1/blog/tags': ['the most [nobody]'],
    '/api/v1/documents': ['of a rare tag [big]'],
  },
}

/** Calls that exceed the limit only at 100 %. The benchmark measures that size, but the test does not. */
const LISTED_AT_FULL_SIZE: CallsByReason = {
  [REASON_COUNTED]: {
    '/api/v1/orgs/:org_id/members': ['last page [big]'],
    '/api/v1/orgs/:org_id/members/details': ['last page [big]'],
    '/api/v1/payment/transactions': [
      'first page [big]',
      'last page [big]',
      'status=succeeded [big]',
      'status=pending [big]',
    ],
    '/api/v1/documents': ['with superseded ones [big]'],
    '/api/v1/auth/users': ['last page [admin]'],
  },
  [REASON_SCANNED]: {
    '/api/v1/jobs/search': [
      'the latest to end [big]',
      'status=failed [admin]',
      'status=done [admin]',
      'a text that none has [admin]',
    ],
  },
  'It begins with up to 1,000 jobs of each state': {
    '/api/v1/jobs/events': ['[big]', '[admin]', '[small]', 'of a queue [big]'],
  },
  'It counts the jobs of a batch, or skips those of other states': {
    '/api/v1/batches/:batch_id': ['[big]'],
    '/api/v1/batches/:batch_id/jobs': ['that failed [big]'],
  },
  'It sums the usage of a conversation, and a smaller table has shorter ones': {
    '/api/v1/ai/conversations/:conversation_id': ['the longest [big]'],
  },
  'It ranks up to 500 posts or 2,000 messages, and a smaller table has fewer matches': {
    '/api/v1/ai/conversations': ['search, a frequent word [big]'],
    '/api/v1/blog/posts': ['search, a frequent word of a tag [nobody]'],
  },
  'It counts the rows of an account through indexes': {
    '/api/v1/auth/me/quotas': ['[big]'],
    '/api/v1/auth/users/:user_id/quotas': ['[admin]'],
  },
  'It merges a page of each state, and a smaller table has fewer such rows': {
    '/api/v1/jobs': [
      'status=queued [big]',
      'status=queued [small]',
      'of the last hours [small]',
      'sort=created_at [big]',
      'sort=-created_at [big]',
    ],
  },
  'It returns a page, and a smaller table has fewer such rows': {
    '/api/v1/auth/audit': ['of an hour [admin]'],
    '/api/v1/webhooks/:endpoint_id/deliveries': ['status=pending [big]', 'status=failed [big]'],
  },
  'It returns the prices of a model, at most one a day': {
    '/llm/prices': ['[big]'],
  },
  'It counts the prices of the catalog, a few thousand, which grow only when a vendor changes one': {
    '/llm/status': ['[admin]', '[big]', '[small]'],
  },
}

const indexByName = (listed: CallsByReason): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(listed).flatMap(([reason, routes]) =>
      Object.entries(routes).flatMap(([path, asked]) => asked.map((what) => [`${path} ${what}`, reason])),
    ),
  )

/** Maps the names of known calls to reasons. */
export const KNOWN = indexByName(KNOWN_BY_REASON)
export const KNOWN_AT_FULL_SIZE = indexByName(LISTED_AT_FULL_SIZE)
