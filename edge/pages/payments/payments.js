// Page of the account's own payments, subscriptions and disputes.

import { actionButton } from '../parts/actions.js'
import { call } from '../parts/api.js'
import { formatCount } from '../parts/format.js'
import { callAndWait } from '../parts/jobs.js'
import { list } from '../parts/list.js'
import { section } from '../parts/states.js'
import { chip, facts } from '../parts/table.js'
import { catalog } from './catalog.js'
import { DISPUTE_COLUMNS, DISPUTE_FILTERS, refundButton, setupNotice, sumsOf, TRANSACTION_COLUMNS, TRANSACTION_FILTERS } from './rows.js'
import { subscriptionList } from './subscriptions.js'

export async function page({ account }) {
  // A failure appears in the section, which reads it again.
  const status = await call('GET', '/api/v1/payment/status').catch(() => null)
  const hasProvider = status?.enabled !== false
  const prices = hasProvider ? catalog() : null
  return [
    overview(account, hasProvider),
    subscriptionList({ hasProvider, prices }),
    prices,
    list({
      title: 'Transactions',
      name: 'paid',
      path: '/api/v1/payment/transactions',
      sort: '-created_at',
      pageSize: 20,
      empty: 'You have paid nothing yet.',
      filters: TRANSACTION_FILTERS,
      columns: TRANSACTION_COLUMNS,
      actions: hasProvider && status?.may_refund !== false ? (payment, rows) => [refundButton(`/api/v1/payment/refund/${payment.id}`, payment, rows)] : undefined,
    }),
    list({
      title: 'Disputes',
      name: 'disputes',
      pageSize: 20,
      path: '/api/v1/payment/disputes',
      note: 'A dispute begins when a bank reverses a payment on request of its cardholder.',
      empty: 'None of your payments is disputed.',
      filters: DISPUTE_FILTERS,
      columns: DISPUTE_COLUMNS,
    }),
  ]
}

const overview = (account, hasProvider) =>
  section({
    title: 'Overview',
    rows: 2,
    read: () => call('GET', '/api/v1/payment/status'),
    show: (status) => [
      setupNotice(status, account),
      facts([
        ['Paid', sumsOf(status)],
        ['Active subscriptions', formatCount(status.active_subscriptions)],
        ['Transactions', formatCount(status.total_transactions)],
        ['Mode', status.enabled && status.is_test_mode ? chip('test, no real money', 'warn') : null],
      ]),
    ],
    actions: hasProvider ? [portalButton()] : [],
  })

/** Opens the provider's page with invoices and cards, which leads back here. */
const portalButton = () =>
  actionButton('Invoices and cards', 'Opening…', 'Invoices and cards', async () => {
    const { portal_url } = await callAndWait('POST', '/api/v1/payment/portal', { json: { return_url: '/payments' } }).catch((error) => {
      if (error.code !== 'payment.customer_missing') throw error
      throw Object.assign(error, { message: 'You have no invoices yet. They begin with your first purchase.' })
    })
    location.assign(portal_url)
    return null
  }, true)
