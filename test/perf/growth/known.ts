import type { Who } from './requests.ts'

/**
 * Calls whose cost grows more than `limits.ts` allows, with the reasons. A call that has been fixed must leave the
 * first list, or the test fails, so the list shows the remaining work.
 */

/** Maps a reason and a path to calls with their callers. */
type CallsByReason = Readonly<Record<string, Readonly<Record<string, readonly `${string}[${Who}]`[]>>>>

const REASON_COUNTED =
  'It counts up to 10,000 matching rows, or skips as many index entries before the last page'

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
  'It sorts the jobs of the account, up to 100,000 of each state': {
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
  'It returns a page, and a smaller table has fewer such rows': {
    '/api/v1/auth/audit': ['of an hour [admin]'],
    '/api/v1/webhooks/:endpoint_id/deliveries': ['status=pending [big]', 'status=failed [big]'],
  },
  'It searches parts of words in the vocabulary of all owners, which is far smaller than their texts': {
    '/api/v1/documents': ['search, a number that one page has [small]'],
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
