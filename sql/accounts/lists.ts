import {
  branchByValue,
  buildArrayText,
  buildTimeSpanCondition,
  type List,
  mapOrders,
  type PageValues,
  pairConditions,
} from '../reads/lists.ts'
import type { ReadStatement } from '../reads/reader.ts'

/** Queries for the list of accounts that admins see. */

export const ROLES = ['user', 'moderator', 'admin'] as const

/**
 * Sort orders of accounts. `last_login` treats accounts that never signed in as absent the longest, and sorts them by
 * creation time.
 */
export const ACCOUNT_ORDERS = {
  created_at: { 'a.created_at': 'timestamptz', 'a.id': 'bigint' },
  email: { 'a.email': 'text' },
  last_login: {
    "coalesce(a.last_login, timestamptz 'epoch')": 'timestamptz',
    'a.created_at': 'timestamptz',
    'a.id': 'bigint',
  },
} as const satisfies Record<string, List['order']>

type Filters = [
  role: string | null,
  active: boolean | null,
  search: string | null,
  asciiSearch: string | null,
  from: string | null,
  to: string | null,
]

// Matches a search text with the wildcards of `like` escaped.
const buildSearch = (parameter: '$3' | '$4'): string =>
  String.raw`a.words like '%' || regexp_replace(folded(${parameter}::text), '([\\%_])', '\\\1', 'g') || '%'`
const LIST_CONDITION = `a.deleted_at is null and ${buildTimeSpanCondition('a.created_at', '$5', '$6')}
  and ($3::text is null or ${buildSearch('$3')} or ${buildSearch('$4')})`

/**
 * Accounts filtered by role, state, part of the email address or name, and creation time. Null matches any value.
 * `asciiSearch` is an alternative to `search`, for addresses whose domain is stored in ASCII.
 */
export const readAccounts = mapOrders(
  ACCOUNT_ORDERS,
  (column, order, direction): ReadStatement<[...Filters, ...page: PageValues]> => ({
    name: `accounts_by_${column}_${direction}`,
    text: buildArrayText({
      table: 'account',
      row: 'a',
      parameters: 6,
      where: pairConditions(
        pairConditions(
          branchByValue('a.role', '$1::text', ROLES),
          branchByValue('a.is_active', '$2::boolean', [true, false]),
        ),
        [LIST_CONDITION],
      ),
      order,
      direction,
      item: 'account_json(a)',
    }),
  }),
)
