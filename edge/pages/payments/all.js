// Page of the payments of all accounts, for admins.

import { call } from '../parts/api.js'
import { h } from '../parts/dom.js'
import { formatCount } from '../parts/format.js'
import { list } from '../parts/list.js'
import { section } from '../parts/states.js'
import { chip, facts } from '../parts/table.js'
import { accountFilter, accountColumn } from './accounts.js'
import { revenueChart } from './revenue.js'
import { DISPUTE_COLUMNS, DISPUTE_FILTERS, refundButton, setupNotice, SUBSCRIPTION_COLUMNS, SUBSCRIPTION_FILTERS, sumsOf, TRANSACTION_COLUMNS, TRANSACTION_FILTERS } from './rows.js'

export async function page({ account }) {
  const status = await call('GET', '/api/v1/payment/admin/status').catch(() => null)
  const hasProvider = status?.enabled !== false
  return [
    totals(account),
    revenueChart((status?.per_currency ?? []).map(({ currency }) => currency)),
    list({
      title: 'Transactions',
      name: 'paid',
      path: '/api/v1/payment/admin/transactions',
      sort: '-created_at',
      pageSize: 20,
      empty: 'Nobody has paid anything yet.',
      filters: [...TRANSACTION_FILTERS, accountFilter()],
      columns: withAccount(account, TRANSACTION_COLUMNS),
      actions: hasProvider ? (payment, rows) => [refundButton(`/api/v1/payment/admin/refund/${payment.id}`, payment, rows)] : undefined,
    }),
    list({
      title: 'Subscriptions',
      name: 'plans',
      pageSize: 20,
      path: '/api/v1/payment/admin/subscriptions',
      empty: 'Nobody has subscribed yet.',
      filters: [...SUBSCRIPTION_FILTERS, accountFilter()],
      columns: withAccount(account, SUBSCRIPTION_COLUMNS),
    }),
    list({
      title: 'Disputes',
      name: 'disputes',
      pageSize: 20,
      path: '/api/v1/payment/admin/disputes',
      note: 'Answer disputes on the page of the payment provider, before the time in “Answer by”.',
      empty: 'No payment is disputed.',
      filters: [...DISPUTE_FILTERS, accountFilter()],
      columns: withAccount(account, DISPUTE_COLUMNS),
    }),
  ]
}

const withAccount = (account, [first, ...rest]) => [first, accountColumn(account), ...rest]

const totals = (account) =>
  section({
    title: 'Totals',
    rows: 2,
    read: () => call('GET', '/api/v1/payment/admin/status'),
    show: (status) => [
      setupNotice(status, account),
      ...warningsOf(status),
      facts([
        ['Revenue', sumsOf(status)],
        ['Active subscriptions', formatCount(status.active_subscriptions)],
        ['Transactions', formatCount(status.total_transactions)],
        ['Provider', status.enabled ? h('span', {}, 'Stripe ', status.is_test_mode ? chip('test, no real money', 'warn') : '') : null],
      ]),
    ],
  })

const IGNORED = { connected_account: 'of connected accounts', other_mode: 'of the other mode (test or live)' }

/** Returns what keeps the totals from being right, each with what to do. */
function warningsOf({ missing_rights, unlinked_invoices, ignored_events }) {
  const texts = [
    missing_rights.length > 0 && `The key of the provider lacks these rights: ${missing_rights.join(', ')}. Add them on the page of the provider.`,
    unlinked_invoices > 0 && `${formatCount(unlinked_invoices)} paid ${unlinked_invoices === 1 ? 'invoice is' : 'invoices are'} no revenue yet, because the payments are unknown. The service asks the provider for them.`,
    ...ignored_events.map(({ reason, events }) => `${formatCount(events)} ${events === 1 ? 'event' : 'events'} ${IGNORED[reason]} did not count. Check which endpoint sends them.`),
  ]
  return texts.filter(Boolean).map((text) => h('p', { class: 'outcome warn' }, text))
}
