import type { Who } from './requests.ts'

/**
 * The calls that cost more on a bigger table than `limits.ts` allows, and why. One that has been mended must leave the
 * first list, or the test fails: so it says what is left to do.
 */

/** Reason -> path -> what is asked, and by whom. */
type Listed = Readonly<Record<string, Readonly<Record<string, readonly `${string}[${Who}]`[]>>>>

const COUNTED =
  'It counts what matches, up to 10,000, or skips as many entries of its index before the last page'

const LISTED: Listed = {
  'It is an answer of everything that there is, read in batches by an index': {
    '/api/v1/blog/export': ['the whole of it [admin]'],
  },
  [COUNTED]: {
    '/api/v1/orgs/memberships': ['last page [admin]'],
    '/api/v1/blog/posts': ['last page [nobody]'],
    '/api/v1/documents': ['last page [big]'],
  },
  'It counts the failures of the time that it is asked for, up to 10,000 of them': {
    '/api/v1/jobs/failures': ['[admin]', 'of a week [admin]'],
  },
  'It answers up to 1,000 rows, and there are fewer of them on a smaller table': {
    '/api/v1/documents/:id/pages': ['of the longest document [big]'],
    '/api/v1/blog/tags': ['the most [nobody]'],
    '/api/v1/documents': ['of a rare tag [big]'],
  },
}

/** Those that show only at 100 %, which the benchmark compares and the test does not. */
const LISTED_AT_FULL_SIZE: Listed = {
  [COUNTED]: {
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
  'It answers a page, and there are fewer such rows on a smaller table': {
    '/api/v1/auth/audit': ['of an hour [admin]'],
    '/api/v1/webhooks/:endpoint_id/deliveries': ['status=pending [big]', 'status=failed [big]'],
  },
  'It looks for parts of words among the words of all owners, which are far fewer than their texts': {
    '/api/v1/documents': ['search, a number that one page has [small]'],
  },
  'It answers the prices of a model, of which there is one a day at most': {
    '/llm/prices': ['[big]'],
  },
  'It counts the prices of the catalog, which are new only when a vendor changes them: a few thousand': {
    '/llm/status': ['[admin]', '[big]', '[small]'],
  },
}

const byName = (listed: Listed): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(listed).flatMap(([reason, routes]) =>
      Object.entries(routes).flatMap(([path, asked]) => asked.map((what) => [`${path} ${what}`, reason])),
    ),
  )

/** The reason by the name of a call. */
export const KNOWN = byName(LISTED)
export const KNOWN_AT_FULL_SIZE = byName(LISTED_AT_FULL_SIZE)
