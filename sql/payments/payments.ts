import {
  branchByValue,
  buildListText,
  buildTimeSpanCondition,
  type List,
  mapOrders,
  type PageValues,
  pairConditions,
} from '../reads/lists.ts'
import type { ReadStatement, ReadValue } from '../reads/reader.ts'

/**
 * Scopes of the edge's payment reads. `own` reads the rows of the account `owner`. `all` reads all rows, with a null
 * `owner`, in deployments without authentication.
 */
export type Scope = 'own' | 'all'
type ScopedStatement<M extends readonly ReadValue[]> = Readonly<
  Record<Scope, ReadStatement<[owner: number | null, ...more: M]>>
>

export const scopeOf = (ownerId: number | null): Scope => (ownerId === null ? 'all' : 'own')

/**
 * Builds a statement for both scopes. `owned` returns the condition that a customer column is in the scope. `summed` is
 * the same condition for tables of sums, where customer 0 holds the totals.
 */
function createScopedStatement<M extends readonly ReadValue[]>(
  name: string,
  text: (owned: (column: string) => string, summed: string) => string,
): ScopedStatement<M> {
  const own = (column: string): string =>
    `${column} = (select c.id from payment_customer c where c.user_id = $1::int)`
  return {
    own: { name: `${name}_own`, text: text(own, own('customer_id')) },
    all: { name: `${name}_all`, text: text(() => '$1::int is null', '$1::int is null and customer_id = 0') },
  }
}

/** Fields of the rows of a read: `public` ones, or also the account that owns each row, for `admin`. */
type View = 'public' | 'admin'

/** Returns the end of a statement's name, the JSON of a row, and the join that it needs for its customer. */
function describeView(view: View, customer: string, json: string) {
  return view === 'public'
    ? { suffix: '', item: json, join: '' }
    : {
        suffix: '_admin',
        item: `payment_with_account(${json}, payer.user_id)`,
        join: `left join payment_customer payer on payer.id = ${customer}`,
      }
}

// Builds one condition without and one with a status filter, because each uses its own index.
const buildStatusConditions = (owned: string, column: string): readonly string[] => [
  `${owned} and $2::text is null`,
  `${owned} and ${column} = $2::text`,
]

export const TRANSACTION_STATUSES = [
  'succeeded',
  'pending',
  'failed',
  'refunded',
  'partially_refunded',
  'canceled',
] as const

/** Sort orders of transactions. */
export const TRANSACTION_ORDERS = {
  created_at: { 't.created_at': 'timestamptz', 't.id': 'bigint' },
  amount: { 't.amount': 'bigint', 't.id': 'bigint' },
} as const satisfies Record<string, List['order']>

const createTransactionLists = (view: View) => {
  const { suffix, ...shown } = describeView(view, 't.customer_id', 'payment_transaction_json(t)')
  return mapOrders(TRANSACTION_ORDERS, (column, order, direction) =>
    createScopedStatement<
      [status: string | null, from: string | null, to: string | null, ...page: PageValues]
    >(`payment_transactions_by_${column}_${direction}${suffix}`, (owned) => {
      const listed = `${owned('t.customer_id')} and t.shown and ${buildTimeSpanCondition('t.created_at', '$3', '$4')}`
      return buildListText('transactions', {
        table: 'payment_transaction',
        row: 't',
        parameters: 4,
        where:
          column === 'amount'
            ? pairConditions(branchByValue('t.status', '$2::text', TRANSACTION_STATUSES), [listed])
            : buildStatusConditions(listed, 't.status'),
        order,
        direction,
        ...shown,
      })
    }),
  )
}

/** A page of transactions, filtered by status and time. A null filter matches any transaction. */
export const readTransactions = createTransactionLists('public')
export const readTransactionsAsAdmin = createTransactionLists('admin')

const createTransactionRead = (view: View) => {
  const { suffix, item, join } = describeView(view, 't.customer_id', 'payment_transaction_json(t)')
  return createScopedStatement<[id: number]>(
    `payment_transaction${suffix}`,
    (owned) => `select ${item}::text from payment_transaction t ${join}
    where ${owned('t.customer_id')} and t.shown and t.id = $2::bigint`,
  )
}

/** One transaction. */
export const readTransaction = createTransactionRead('public')
export const readTransactionAsAdmin = createTransactionRead('admin')

export const SUBSCRIPTION_ORDER = { 's.id': 'bigint' } as const

const createSubscriptionList = (view: View) => {
  const { suffix, ...shown } = describeView(view, 's.customer_id', 'payment_subscription_json(s)')
  return createScopedStatement<[status: string | null, ...page: PageValues]>(
    `payment_subscriptions${suffix}`,
    (owned) =>
      buildListText('subscriptions', {
        table: 'payment_subscription',
        row: 's',
        parameters: 2,
        where: buildStatusConditions(owned('s.customer_id'), 's.status'),
        order: SUBSCRIPTION_ORDER,
        direction: 'desc',
        ...shown,
      }),
  )
}

/** A page of subscriptions, newest first, filtered by status; null matches any status. */
export const readSubscriptions = createSubscriptionList('public')
export const readSubscriptionsAsAdmin = createSubscriptionList('admin')

/** Statuses that the API's filter `open` selects. */
export const OPEN_DISPUTE_STATUSES = ['warning_issued', 'needs_response', 'under_review'] as const

export const DISPUTE_ORDER = { 'd.id': 'bigint' } as const
const DISPUTED_TRANSACTION_JOIN = 'left join payment_transaction t on t.id = d.transaction_id'

const createDisputeList = (view: View) => {
  const { suffix, item, join } = describeView(view, 'd.customer_id', 'payment_dispute_json(d, t)')
  return createScopedStatement<[status: string | null, ...page: PageValues]>(
    `payment_disputes${suffix}`,
    (owned) =>
      buildListText('disputes', {
        table: 'payment_dispute',
        row: 'd',
        parameters: 2,
        where: [
          ...buildStatusConditions(owned('d.customer_id'), 'd.status'),
          ...OPEN_DISPUTE_STATUSES.map(
            (status) => `${owned('d.customer_id')} and $2::text = 'open' and d.status = '${status}'`,
          ),
        ],
        order: DISPUTE_ORDER,
        direction: 'desc',
        join: `${DISPUTED_TRANSACTION_JOIN} ${join}`,
        item,
      }),
  )
}

/** A page of disputes, newest first, filtered by status or `open`; null matches any status. */
export const readDisputes = createDisputeList('public')
export const readDisputesAsAdmin = createDisputeList('admin')

const createDisputeRead = (view: View) => {
  const { suffix, item, join } = describeView(view, 'd.customer_id', 'payment_dispute_json(d, t)')
  return createScopedStatement<[id: number]>(
    `payment_dispute${suffix}`,
    (owned) => `select ${item}::text from payment_dispute d ${DISPUTED_TRANSACTION_JOIN} ${join}
    where ${owned('d.customer_id')} and d.id = $2::bigint`,
  )
}

/** One dispute. */
export const readDispute = createDisputeRead('public')
export const readDisputeAsAdmin = createDisputeRead('admin')

/** Reasons for ignoring events of supported types: they are not about this account or not in the mode of its key. */
export const IGNORE_REASONS = ['connected_account', 'other_mode'] as const
export type IgnoreReason = (typeof IGNORE_REASONS)[number]

// SQL for the deployment's main currency: the most frequent one of its latest 1000 payments.
const MAIN_CURRENCY = `coalesce((
  select currency from (
    select currency from payment_transaction where shown and charge_id is null
    order by created_at desc, id desc limit 1000) latest
  group by currency order by count(*) desc, currency limit 1), 'usd')`

/** Counts and sums of payments. `enabled` and `isTestMode` describe the provider's key. */
export const readSummary = createScopedStatement<[enabled: boolean, isTestMode: boolean]>(
  'payment_summary',
  (owned, summed) => `
    with main as (select ${MAIN_CURRENCY} as currency), sums as (
      select currency, sum(transactions) as transactions, sum(payments) as payments, sum(revenue) as revenue
      from payment_sum where ${summed} group by currency)
    select json_build_object('provider', 'stripe', 'enabled', $2::boolean, 'is_test_mode', $3::boolean,
      'total_transactions', (select coalesce(sum(transactions), 0) from sums),
      'total_revenue_cents', coalesce((select revenue from sums join main using (currency)), 0),
      'active_subscriptions',
        (select coalesce(sum(subscriptions), 0) from payment_subscription_count where ${summed}),
      'currency', (select currency from main),
      'per_currency', (select coalesce(json_agg(json_build_object('currency', currency, 'revenue_cents', revenue,
        'payments', payments) order by revenue desc, currency), '[]') from sums where payments > 0),
      'ignored_events', (select coalesce(json_agg(json_build_object('reason', reason, 'events', events,
        'last_type', last_type, 'last_received_at', iso(last_received_at)) order by reason), '[]')
        from payment_ignored_event),
      'missing_rights', coalesce((select to_json(missing_rights) from payment_key where $2::boolean), '[]'),
      'unlinked_invoices', (select count(*) from payment_transaction where ${owned('customer_id')} and unlinked))::text`,
)

/**
 * Revenue per UTC day for the last `days`, including days without any. A null currency means the main one. A refund
 * counts on the day of its payment, so that the days add up to the summary's revenue.
 */
export const readRevenue = createScopedStatement<[days: number, currency: string | null]>(
  'payment_revenue',
  (_, summed) => `
    with given as (
      select coalesce($3::text, ${MAIN_CURRENCY}) as currency, today, today - make_interval(days => $2::int - 1) as first
      from date_trunc('day', now() at time zone 'utc') today
    ), paid as (
      select day::timestamp as day, sum(revenue) as revenue, sum(payments) as payments from payment_sum
      where ${summed} and currency = (select currency from given) and day >= (select first::date from given)
      group by 1
    )
    select json_build_object('currency', given.currency, 'days', $2::int, 'points', (
      select json_agg(json_build_object('date', to_char(day, 'YYYY-MM-DD'), 'revenue_cents', coalesce(paid.revenue, 0),
        'payments', coalesce(paid.payments, 0)) order by day)
      from generate_series(given.first, given.today, interval '1 day') day left join paid using (day)))::text
    from given`,
)
