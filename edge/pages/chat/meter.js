// Tokens and cost of a conversation, and what is left of the budgets.

import { call } from '../parts/api.js'
import { h } from '../parts/dom.js'
import { formatCount, formatDollars } from '../parts/format.js'

const PERIODS = { day: 'today', month: 'this month' }

/** Makes the line. `show(usage)` takes the sums of a conversation, or null; `update()` reads the budgets. */
export function makeMeter() {
  const cost = h('span', {})
  const left = h('span', {})
  const node = h('p', { class: 'soft meter' }, cost, left)
  const update = async () => {
    const { account } = await call('GET', '/api/v1/ai/usage/budget').catch(() => ({ account: null }))
    left.textContent = (account ?? []).filter(({ limit }) => limit !== null).map(leftOf).join(' · ')
  }
  const show = (usage) => {
    cost.textContent = usage === null || usage.input_tokens + usage.output_tokens === 0 ? '' : `${formatCount(usage.input_tokens)} tokens in, ${formatCount(usage.output_tokens)} out${usage.cost === null ? '' : ` · ${formatDollars(usage.cost)}`}`
    cost.title = usage?.unpriced_answers > 0 ? `${usage.unpriced_answers} answers have no known price` : ''
  }
  update()
  return { node, show, update }
}

function leftOf({ kind, left, limit }) {
  const [period, unit] = kind.split('_')
  const text = unit === 'tokens' ? `${formatCount(left)} of ${formatCount(limit)} tokens` : `${formatDollars(left)} of ${formatDollars(limit)}`
  return `${text} left ${PERIODS[period] ?? period}`
}
