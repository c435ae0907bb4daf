// Chart of the daily revenue of all accounts.

import { call } from '../parts/api.js'
import { timeChart } from '../parts/chart.js'
import { h, setText } from '../parts/dom.js'
import { replaceAddress } from '../parts/filters.js'
import { formatCount } from '../parts/format.js'
import { section } from '../parts/states.js'
import { formatMoney, formatMoneyShort } from './money.js'

const PERIODS = [['30', '30 days'], ['90', '90 days'], ['365', '365 days']]

/** Makes the section. The period and the currency are in the address. */
export function revenueChart(currencies) {
  const given = new URLSearchParams(location.search)
  let currency = given.get('currency') ?? currencies[0] ?? 'usd'
  const total = h('p', { class: 'soft', role: 'status' })
  const chart = timeChart({
    title: 'Revenue by day',
    series: [{ name: 'Revenue', tone: '--accent', kind: 'bars' }],
    format: (value) => formatMoney(value, currency),
    formatTick: (value) => formatMoneyShort(value, currency),
    height: 220,
    isDaily: true,
  })
  const days = select('Period', PERIODS, given.get('days') ?? '30')
  const money = select('Currency', [...new Set([currency, ...currencies])].map((code) => [code, code.toUpperCase()]), currency)
  const part = section({
    title: 'Revenue',
    note: 'Payments less refunds, by day in UTC. A refund counts on the day of its payment.',
    // Without any payment there is no chart to make room for.
    rows: currencies.length === 0 ? 1 : 8,
    empty: 'Nobody has paid in this currency and period.',
    read: () => call('GET', `/api/v1/payment/admin/revenue-timeseries?days=${days.control.value}&currency=${money.control.value}`),
    show: (series) => {
      currency = series.currency
      const revenue = series.points.reduce((sum, point) => sum + point.revenue_cents, 0)
      const payments = series.points.reduce((sum, point) => sum + point.payments, 0)
      if (payments === 0) return null
      setText(total, `${formatMoney(revenue, currency)} by ${formatCount(payments)} ${payments === 1 ? 'payment' : 'payments'} in ${series.days} days`)
      chart.draw({ times: series.points.map(({ date }) => Date.parse(date)), values: [series.points.map(({ revenue_cents }) => revenue_cents)] })
      return [total, chart.node]
    },
    actions: [money.node, days.node],
  })
  for (const { control } of [days, money])
    control.addEventListener('change', () => {
      replaceAddress({ days: days.control.value, currency: money.control.value })
      part.load()
    })
  return part
}

function select(label, options, value) {
  const known = options.some(([option]) => option === value) ? value : options[0][0]
  const control = h('select', {}, ...options.map(([option, text]) => h('option', { value: option, selected: option === known }, text)))
  return { node: h('label', { class: 'inline' }, label, control), control }
}
