import { arrayText, byValue, everyPair, inOrders, type List, type PageValues, within } from '../lists.ts'
import type { ReadStatement } from '../reader.ts'

/** The list of accounts, for those who administer them. */

export const ROLES = ['user', 'moderator', 'admin'] as const

/** What may order the accounts. Those that have never signed in are the longest absent, in the order in which they came. */
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
  from: string | null,
  to: string | null,
]

// Of `like`, only what stands for itself.
const SEARCHED = String.raw`regexp_replace(folded($3::text), '([\\%_])', '\\\1', 'g')`
const LISTED = `a.deleted_at is null and ${within('a.created_at', '$4', '$5')}
  and ($3::text is null or a.words like '%' || ${SEARCHED} || '%')`

/** Accounts of a role and a state, with a part of the e-mail address or name, added in a time; null: any. */
export const readAccounts = inOrders(
  ACCOUNT_ORDERS,
  (column, order, direction): ReadStatement<[...Filters, ...page: PageValues]> => ({
    name: `accounts_by_${column}_${direction}`,
    text: arrayText({
      table: 'account',
      row: 'a',
      parameters: 5,
      where: everyPair(
        everyPair(byValue('a.role', '$1::text', ROLES), byValue('a.is_active', '$2::boolean', [true, false])),
        [LISTED],
      ),
      order,
      direction,
      item: 'account_json(a)',
    }),
  }),
)
