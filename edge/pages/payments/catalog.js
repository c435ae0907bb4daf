// Prices that an account can pay.

import { actionButton } from '../parts/actions.js'
import { ApiError } from '../parts/api.js'
import { confirmAction } from '../parts/dialog.js'
import { h } from '../parts/dom.js'
import { callAndWait } from '../parts/jobs.js'
import { section } from '../parts/states.js'
import { formatMoney } from './money.js'

/** Makes the section of prices. Its `read()` returns the prices, which other parts of the page share. */
export function catalog() {
  let reading = null
  const read = () => {
    reading ??= callAndWait('GET', '/api/v1/payment/catalog').then(({ prices }) => prices)
    reading.catch(() => (reading = null))
    return reading
  }
  const part = section({
    title: 'Prices',
    note: 'You pay on a page of the payment provider, which then leads back.',
    empty: 'There is nothing to buy yet. Prices are added at the payment provider.',
    read,
    show: (prices) => (prices.length === 0 ? null : h('ul', { class: 'prices' }, ...prices.map(priceCard))),
  })
  return { ...part, read }
}

/** Formats a price with its interval. */
export function describePrice({ amount, currency, interval, interval_count }) {
  const money = amount === null ? 'Price at checkout' : formatMoney(amount, currency)
  if (interval === null) return money
  return interval_count === 1 ? `${money} per ${interval}` : `${money} every ${interval_count} ${interval}s`
}

const priceCard = (price) =>
  h(
    'li',
    {},
    h('strong', {}, price.name),
    h('span', { class: 'soft text' }, price.description ?? ''),
    h('span', { class: 'amount' }, describePrice(price)),
    buyButton(price),
  )

function buyButton({ price_id, mode, name, ...price }) {
  const [text, busy] = mode === 'subscription' ? ['Subscribe', 'Opening…'] : ['Buy', 'Opening…']
  const open = async (more = {}) => {
    const { checkout_url } = await callAndWait('POST', '/api/v1/payment/checkout', { json: { price_id, mode, ...more } })
    location.assign(checkout_url)
  }
  return actionButton(text, busy, `${text}: ${name}, ${describePrice(price)}`, async () => {
    try {
      await open()
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'subscription.running') throw error
      const isWanted = await confirmAction(`Subscribe to ${name} again?`, 'You already have a running subscription of this price. A second one is charged, too.', 'Subscribe again')
      if (isWanted) await open({ allow_second: true })
    }
    return null
  }, true)
}
