// Columns, filters and refunds that the pages of an account and of all accounts share.

import { button } from '../parts/actions.js'
import { openForm } from '../parts/dialog.js'
import { h } from '../parts/dom.js'
import { formatCount, formatDateTime } from '../parts/format.js'
import { callAndWait } from '../parts/jobs.js'
import { chip, clamped } from '../parts/table.js'
import { digitsOf, formatMoney, toSmallestUnit } from './money.js'

const TONES = {
  succeeded: 'good', pending: 'live', failed: 'bad', refunded: 'warn', partially_refunded: 'warn', canceled: '',
  active: 'good', trialing: 'live', past_due: 'bad', unpaid: 'bad', incomplete: 'warn',
  warning_issued: 'warn', warning_closed: '', needs_response: 'bad', under_review: 'live', won: 'good', lost: 'bad', charge_refunded: 'warn',
}
const words = (status) => status.replaceAll('_', ' ')
const optionsOf = (statuses) => statuses.map((status) => [status, words(status)])

const statusChip = (status) => chip(words(status), TONES[status] ?? '')

const TYPE_NAMES = { charge: 'Payment', refund: 'Refund', subscription: 'Subscription' }

const status = (options) => ({ name: 'status', label: 'State', options })

export const TRANSACTION_FILTERS = [
  status(optionsOf(['succeeded', 'pending', 'failed', 'refunded', 'partially_refunded', 'canceled'])),
  { name: 'from', label: 'From', type: 'datetime-local' },
  { name: 'to', label: 'Before', type: 'datetime-local' },
]
export const SUBSCRIPTION_FILTERS = [status(optionsOf(['active', 'trialing', 'past_due', 'unpaid', 'incomplete', 'canceled']))]
export const DISPUTE_FILTERS = [status([['open', 'open'], ...optionsOf(['needs_response', 'under_review', 'won', 'lost', 'warning_issued', 'warning_closed', 'charge_refunded'])])]

export const TRANSACTION_COLUMNS = [
  { name: 'Description', kind: 'name', show: ({ description, type }) => clamped((type === 'refund' ? words(description) : description) || TYPE_NAMES[type]) },
  { name: 'Kind', show: ({ type }) => TYPE_NAMES[type] },
  { name: 'State', show: (one) => statusChip(one.status) },
  { name: 'Amount', kind: 'number', sort: 'amount', show: ({ amount, currency, type }) => (type === 'refund' ? `−${formatMoney(amount, currency)}` : formatMoney(amount, currency)) },
  { name: "Provider's ID", isHidden: true, show: ({ provider_transaction_id }) => h('code', { class: 'bound' }, provider_transaction_id) },
  { name: 'Time', kind: 'number', sort: 'created_at', show: ({ created_at }) => formatDateTime(created_at) },
]

const formatDay = (iso) => (iso === null ? null : new Date(iso).toLocaleDateString('en-GB', { dateStyle: 'medium' }))

/** Says when a subscription renews or ends. */
function renewalOf({ status: state, cancel_at_period_end, cancel_at, current_period_end }) {
  if (state === 'canceled') return 'Ended'
  if (cancel_at_period_end) return `Ends ${formatDay(cancel_at ?? current_period_end) ?? 'with the paid period'}`
  if (cancel_at !== null) return `Renews until ${formatDay(cancel_at)}`
  return current_period_end === null ? null : `Renews ${formatDay(current_period_end)}`
}

export const SUBSCRIPTION_COLUMNS = [
  { name: 'Plan', kind: 'name', show: ({ plan_name }) => h('strong', { class: 'clamp' }, plan_name || 'Unnamed plan') },
  { name: 'State', show: (one) => statusChip(one.status) },
  { name: 'Next', kind: 'figure', show: renewalOf },
  { name: 'Period began', kind: 'number', show: ({ current_period_start }) => formatDay(current_period_start) },
  { name: "Provider's ID", isHidden: true, show: ({ provider_subscription_id }) => h('code', { class: 'bound' }, provider_subscription_id) },
]

export const DISPUTE_COLUMNS = [
  { name: 'Reason', kind: 'name', show: ({ reason }) => clamped(words(reason) || 'No reason given') },
  { name: 'State', show: (one) => statusChip(one.status) },
  { name: 'Amount', kind: 'number', show: ({ amount, currency }) => formatMoney(amount, currency) },
  { name: 'Answer by', kind: 'number', show: ({ status: state, evidence_due_by }) => (['needs_response', 'warning_issued'].includes(state) && evidence_due_by !== null ? formatDateTime(evidence_due_by) : null) },
  { name: "Provider's ID", isHidden: true, show: ({ provider_dispute_id }) => h('code', { class: 'bound' }, provider_dispute_id) },
  { name: 'Opened', kind: 'number', show: ({ created_at }) => formatDateTime(created_at) },
]

const isRefundable = ({ type, status: state }) => type !== 'refund' && (state === 'succeeded' || state === 'partially_refunded')
const REASONS = [['requested_by_customer', 'Requested by the customer'], ['duplicate', 'Duplicate'], ['fraudulent', 'Fraudulent']]

/** Makes the button that refunds a payment by the route `path`; null if it cannot be refunded. */
export function refundButton(path, payment, rows) {
  if (!isRefundable(payment)) return null
  const name = `${payment.description || 'payment'} of ${formatMoney(payment.amount, payment.currency)}`
  return button('Refund', () => refund(path, payment, rows), { label: `Refund ${name}` })
}

const refund = (path, { amount, currency, description }, rows) =>
  openForm(`Refund ${description || 'payment'}`, {
    operation: 'POST /api/v1/payment/refund/{id}',
    fields: ['amount', 'reason'],
    set: {
      amount: {
        label: `Amount in ${currency.toUpperCase()}`,
        help: `Paid: ${formatMoney(amount, currency)}. Leave it empty to refund all that is left. A refund cannot be reversed.`,
        type: 'number',
        min: 1 / 10 ** digitsOf(currency),
        max: amount / 10 ** digitsOf(currency),
      },
      reason: { type: 'enum', options: REASONS, none: 'No reason' },
    },
    prepare: (values) => (values.amount === undefined ? values : { ...values, amount: toSmallestUnit(values.amount, currency) }),
    send: (json) => callAndWait('POST', path, { json }),
    submit: 'Refund',
    busy: 'Refunding…',
    done: async (made) => {
      await rows.reload()
      return `Refunded ${formatMoney(made.amount, made.currency)}`
    },
  })

/** Returns the warning about a service without a provider; null if there is one. */
export function setupNotice({ enabled }, account) {
  if (enabled) return null
  const set = [h('code', {}, 'PROVIDER_SECRET_KEY'), ' and ', h('code', {}, 'PROVIDER_WEBHOOK_SECRET')]
  const text = account.role === 'admin' ? ['Set ', ...set, ' to the secret key of Stripe and the secret of its webhook endpoint, then restart the service. ', h('a', { href: '/docs' }, 'The reference'), ' lists the events to send.'] : ['Ask an admin of the service to set up payments.']
  return h('p', { class: 'outcome warn' }, h('strong', {}, 'No payment provider is set up. '), ...text)
}

/** Lists the sum of each currency with its number of payments. */
export function sumsOf({ per_currency }) {
  if (per_currency.length === 0) return 'Nothing yet'
  const line = ({ currency, revenue_cents, payments }) => h('li', {}, h('strong', {}, formatMoney(revenue_cents, currency)), h('span', { class: 'soft' }, `by ${formatCount(payments)} ${payments === 1 ? 'payment' : 'payments'}`))
  return h('ul', { class: 'plain' }, ...per_currency.map(line))
}
