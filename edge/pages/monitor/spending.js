// Panels of model costs and sent messages by day.

import { call } from './api.js'
import { stackedBars } from './chart.js'
import { announce, h, panel, setText, table } from './dom.js'
import { formatCount, formatDollars } from './format.js'

const PERIODS = [7, 30, 90, 366]
const DEFAULT_PERIOD = 30
// Number of models with a colour of their own; all others share one.
const MAX_COLOURS = 5
const DAY_MS = 86_400_000

/**
 * Makes two panels and a choice of days. After each choice, `onTotals` receives the cost and the number of sent
 * messages.
 */
export function makeSpending(onTotals) {
  const models = makeModels()
  const sends = makeSends()
  const periodSelect = h('select', {}, ...PERIODS.map((n) => h('option', { value: n, selected: n === DEFAULT_PERIOD }, n === 366 ? 'year' : `${n} days`)))
  const problem = h('p', { class: 'bad', role: 'alert' })
  const load = async () => {
    const spent = await call('GET', `/api/v1/system/spending?days=${periodSelect.value}`)
    const days = daysOf(spent)
    onTotals(models.show(spent.models, days), sends.show(spent.sends, days))
  }
  periodSelect.addEventListener('change', async () => {
    problem.textContent = ''
    try {
      await load()
      announce(`Showing the last ${periodSelect.selectedOptions[0].textContent}`)
    } catch (error) {
      problem.textContent = error.message
    }
  })
  const bar = h('div', { class: 'line' }, h('label', { class: 'period' }, 'The last ', periodSelect), problem)
  return { node: h('div', { class: 'spending' }, bar, h('div', { class: 'columns' }, models.node, sends.node)), load }
}

/** Returns all days from `from` to `to` as ISO dates. */
function daysOf({ from, to }) {
  const length = (Date.parse(to) - Date.parse(from)) / DAY_MS + 1
  return Array.from({ length }, (_, i) => new Date(Date.parse(from) + i * DAY_MS).toISOString().slice(0, 10))
}

/** Makes a bar chart. Below it are its first day, its last day and the highest daily total. */
function makeChart(format) {
  const { node: bars, draw } = stackedBars()
  const [first, last, most] = ['first', 'last', 'most'].map(() => h('span', {}))
  const show = (layers, days, label) => {
    draw(layers, label)
    const totals = days.map((_, i) => layers.reduce((sum, { values }) => sum + values[i], 0))
    setText(first, days[0])
    setText(last, days.at(-1))
    setText(most, `at most ${format(Math.max(...totals))} a day`)
  }
  return { node: h('div', { class: 'figures' }, bars, h('p', { class: 'soft ends' }, first, most, last)), show }
}

/** Makes a table that builds its rows only when opened, because it may be long. */
function makeByDay(caption, columns, rowsOf) {
  const { node, body, row } = table(caption, columns)
  const details = h('details', {}, h('summary', {}, 'By day'), node)
  let rows = []
  const fill = () => details.open && body.replaceChildren(...rows.map((cells) => row(...cells)))
  details.addEventListener('toggle', fill)
  const show = (items) => {
    rows = rowsOf(items)
    details.hidden = rows.length === 0
    fill()
  }
  return { node: details, show }
}

const swatch = (kind) => h('span', { class: `swatch ${kind}`, 'aria-hidden': 'true' })
const sum = (items, field) => items.reduce((total, item) => total + (item[field] ?? 0), 0)
const latestFirst = (a, b) => (a.day < b.day ? 1 : a.day > b.day ? -1 : 0)

function makeModels() {
  const chart = makeChart(formatDollars)
  const { node, body, row } = table('Model costs', [
    ['Model', 'wide'],
    ['Requests', 'number'],
    ['Tokens', 'number'],
    ['Cost', 'number'],
  ])
  const none = h('p', { class: 'soft' }, 'No model was used in this period.')
  const byDay = makeByDay(
    'Model costs by day',
    [
      ['Day', 'name'],
      ['Model', 'wide'],
      ['Requests', 'number'],
      ['Tokens', 'number'],
      ['Cost', 'number'],
    ],
    (models) =>
      models
        .flatMap(({ model_id, days }) => days.map((entry) => ({ ...entry, model_id })))
        .sort(latestFirst)
        .map(({ day, model_id, requests, tokens, cost }) => [day, model_id, formatCount(requests), formatCount(tokens), formatDollars(cost)]),
  )
  const show = (models, days) => {
    const kindOf = (i) => `tone${Math.min(i, MAX_COLOURS)}`
    const layers = models.map((model, i) => {
      const costs = new Map(model.days.map(({ day, cost }) => [day, cost ?? 0]))
      return { values: days.map((day) => costs.get(day) ?? 0), kind: kindOf(i) }
    })
    const cost = models.some((model) => model.cost !== null) || models.length === 0 ? sum(models, 'cost') : null
    chart.show(layers, days, `Model costs by day, ${formatDollars(cost)} in total`)
    chart.node.hidden = !cost
    node.hidden = models.length === 0
    none.hidden = models.length > 0
    body.replaceChildren(
      ...models.map(({ vendor, model_id, requests, tokens, cost: modelCost, unpriced_requests }, i) =>
        row(
          h('span', {}, swatch(kindOf(i)), h('strong', {}, model_id), h('span', { class: 'soft' }, ` ${vendor}`)),
          formatCount(requests),
          formatCount(tokens),
          h('span', {}, formatDollars(modelCost), modelCost !== null && unpriced_requests > 0 ? ` and ${formatCount(unpriced_requests)} without a price` : ''),
        ),
      ),
    )
    byDay.show(models)
    return cost
  }
  return { node: panel('Model costs', {}, chart.node, none, node, byDay.node), show }
}

const OUTCOMES = ['delivered', 'sent', 'failed', 'bounced', 'complained', 'unknown', 'cancelled', 'waiting']
// Outcomes that only messages accepted by the provider can have.
const ACCEPTED = ['delivered', 'sent', 'bounced', 'complained']
const CHANNELS = { email: 'Email', sms: 'Text messages', call: 'Calls' }
const OUTCOME_COLUMNS = OUTCOMES.map((outcome) => [outcome[0].toUpperCase() + outcome.slice(1), 'number'])

function makeSends() {
  const chart = makeChart(formatCount)
  const { node, body, row } = table('Messages', [['Channel', 'name'], ...OUTCOME_COLUMNS])
  const legend = h('p', { class: 'soft legend' }, ...OUTCOMES.map((outcome) => h('span', {}, swatch(outcome), outcome)))
  const none = h('p', { class: 'soft' }, 'No messages were sent in this period.')
  const byDay = makeByDay('Messages by day', [['Day', 'name'], ['Channel', ''], ...OUTCOME_COLUMNS], (sends) =>
    sends.toSorted(latestFirst).map((entry) => [entry.day, CHANNELS[entry.channel], ...OUTCOMES.map((outcome) => formatCount(entry[outcome]))]),
  )
  const show = (sends, days) => {
    const ofDay = Map.groupBy(sends, ({ day }) => day)
    const layers = OUTCOMES.map((outcome) => ({
      values: days.map((day) => sum(ofDay.get(day) ?? [], outcome)),
      kind: outcome,
    }))
    const sent = ACCEPTED.reduce((all, outcome) => all + sum(sends, outcome), 0)
    chart.show(layers, days, `Messages by day, ${formatCount(sent)} sent in total`)
    for (const part of [chart.node, legend, node]) part.hidden = sends.length === 0
    none.hidden = sends.length > 0
    const channels = Object.keys(CHANNELS).filter((channel) => sends.some((entry) => entry.channel === channel))
    body.replaceChildren(
      ...channels.map((channel) => {
        const channelSends = sends.filter((entry) => entry.channel === channel)
        return row(h('strong', {}, CHANNELS[channel]), ...OUTCOMES.map((outcome) => formatCount(sum(channelSends, outcome))))
      }),
    )
    byDay.show(sends)
    return sent
  }
  return { node: panel('Messages', {}, chart.node, legend, none, node, byDay.node), show }
}
