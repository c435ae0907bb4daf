// What models cost and what was sent, by day.

import { call } from './api.js'
import { stackedBars } from './chart.js'
import { announce, h, panel, say, table } from './dom.js'
import { count, dollars } from './format.js'

const PERIODS = [7, 30, 90, 366]
const FIRST = 30
// Each has a colour of its own; the others share one.
const MAX_COLOURS = 5
const DAY_MS = 86_400_000

/** Two panels for the days that one chooses; `total` is told the cost and the messages sent of each choice. */
export function makeSpending(total) {
  const models = makeModels()
  const sends = makeSends()
  const choice = h('select', {}, ...PERIODS.map((n) => h('option', { value: n, selected: n === FIRST }, n === 366 ? 'year' : `${n} days`)))
  const problem = h('p', { class: 'bad', role: 'alert' })
  const load = async () => {
    const spent = await call('GET', `/api/v1/system/spending?days=${choice.value}`)
    const days = daysOf(spent)
    total(models.take(spent.models, days), sends.take(spent.sends, days))
  }
  choice.addEventListener('change', async () => {
    problem.textContent = ''
    try {
      await load()
      announce(`The last ${choice.selectedOptions[0].textContent} are shown`)
    } catch (error) {
      problem.textContent = error.message
    }
  })
  const bar = h('div', { class: 'line' }, h('label', { class: 'period' }, 'The last ', choice), problem)
  return { node: h('div', { class: 'spending' }, bar, h('div', { class: 'columns' }, models.node, sends.node)), load }
}

/** The days from the first one to the last. */
function daysOf({ from, to }) {
  const length = (Date.parse(to) - Date.parse(from)) / DAY_MS + 1
  return Array.from({ length }, (_, i) => new Date(Date.parse(from) + i * DAY_MS).toISOString().slice(0, 10))
}

/** Bars over their first and last day, with what the highest one stands for. */
function makeChart(format) {
  const { node: bars, draw } = stackedBars()
  const [first, last, most] = ['first', 'last', 'most'].map(() => h('span', {}))
  const take = (layers, days, label) => {
    draw(layers, label)
    const totals = days.map((_, i) => layers.reduce((sum, { values }) => sum + values[i], 0))
    say(first, days[0])
    say(last, days.at(-1))
    say(most, `at most ${format(Math.max(...totals))} a day`)
  }
  return { node: h('div', { class: 'figures' }, bars, h('p', { class: 'soft ends' }, first, most, last)), take }
}

/** A table that is made when it is opened: it may be long. */
function makeByDay(caption, columns, rowsOf) {
  const { node, body, row } = table(caption, columns)
  const details = h('details', {}, h('summary', {}, 'By day'), node)
  let rows = []
  const fill = () => details.open && body.replaceChildren(...rows.map((cells) => row(...cells)))
  details.addEventListener('toggle', fill)
  const take = (items) => {
    rows = rowsOf(items)
    details.hidden = rows.length === 0
    fill()
  }
  return { node: details, take }
}

const swatch = (kind) => h('span', { class: `swatch ${kind}`, 'aria-hidden': 'true' })
const sum = (items, field) => items.reduce((total, item) => total + (item[field] ?? 0), 0)
const latestFirst = (a, b) => (a.day < b.day ? 1 : a.day > b.day ? -1 : 0)

function makeModels() {
  const chart = makeChart(dollars)
  const { node, body, row } = table('Cost of models', [
    ['Model', 'wide'],
    ['Requests', 'number'],
    ['Tokens', 'number'],
    ['Cost', 'number'],
  ])
  const none = h('p', { class: 'soft' }, 'No model was used.')
  const byDay = makeByDay(
    'Cost of models by day',
    [
      ['Day', 'name'],
      ['Model', 'wide'],
      ['Requests', 'number'],
      ['Tokens', 'number'],
      ['Cost', 'number'],
    ],
    (models) =>
      models
        .flatMap(({ model_id, days }) => days.map((of) => ({ ...of, model_id })))
        .sort(latestFirst)
        .map(({ day, model_id, requests, tokens, cost }) => [day, model_id, count(requests), count(tokens), dollars(cost)]),
  )
  const take = (models, days) => {
    const kindOf = (i) => `tone${Math.min(i, MAX_COLOURS)}`
    const layers = models.map((model, i) => {
      const costs = new Map(model.days.map(({ day, cost }) => [day, cost ?? 0]))
      return { values: days.map((day) => costs.get(day) ?? 0), kind: kindOf(i) }
    })
    const cost = models.some((model) => model.cost !== null) || models.length === 0 ? sum(models, 'cost') : null
    chart.take(layers, days, `Cost of models by day, ${dollars(cost)} in all`)
    chart.node.hidden = !cost
    node.hidden = models.length === 0
    none.hidden = models.length > 0
    body.replaceChildren(
      ...models.map(({ vendor, model_id, requests, tokens, cost: its, unpriced_requests }, i) =>
        row(
          h('span', {}, swatch(kindOf(i)), h('strong', {}, model_id), h('span', { class: 'soft' }, ` ${vendor}`)),
          count(requests),
          count(tokens),
          h('span', {}, dollars(its), its !== null && unpriced_requests > 0 ? ` and ${count(unpriced_requests)} without a price` : ''),
        ),
      ),
    )
    byDay.take(models)
    return cost
  }
  return { node: panel('Cost of models', {}, chart.node, none, node, byDay.node), take }
}

const OUTCOMES = ['delivered', 'sent', 'failed', 'bounced', 'complained', 'unknown', 'cancelled', 'waiting']
// What the provider has taken.
const TAKEN = ['delivered', 'sent', 'bounced', 'complained']
const CHANNELS = { email: 'Email', sms: 'Text messages', call: 'Calls' }
const OUTCOME_COLUMNS = OUTCOMES.map((outcome) => [outcome[0].toUpperCase() + outcome.slice(1), 'number'])

function makeSends() {
  const chart = makeChart(count)
  const { node, body, row } = table('Messages', [['Channel', 'name'], ...OUTCOME_COLUMNS])
  const legend = h('p', { class: 'soft legend' }, ...OUTCOMES.map((outcome) => h('span', {}, swatch(outcome), outcome)))
  const none = h('p', { class: 'soft' }, 'Nothing was sent.')
  const byDay = makeByDay('Messages by day', [['Day', 'name'], ['Channel', ''], ...OUTCOME_COLUMNS], (sends) =>
    sends.toSorted(latestFirst).map((of) => [of.day, CHANNELS[of.channel], ...OUTCOMES.map((outcome) => count(of[outcome]))]),
  )
  const take = (sends, days) => {
    const ofDay = Map.groupBy(sends, ({ day }) => day)
    const layers = OUTCOMES.map((outcome) => ({
      values: days.map((day) => sum(ofDay.get(day) ?? [], outcome)),
      kind: outcome,
    }))
    const sent = TAKEN.reduce((all, outcome) => all + sum(sends, outcome), 0)
    chart.take(layers, days, `Messages by day, ${count(sent)} sent in all`)
    for (const part of [chart.node, legend, node]) part.hidden = sends.length === 0
    none.hidden = sends.length > 0
    const channels = Object.keys(CHANNELS).filter((channel) => sends.some((of) => of.channel === channel))
    body.replaceChildren(
      ...channels.map((channel) => {
        const its = sends.filter((of) => of.channel === channel)
        return row(h('strong', {}, CHANNELS[channel]), ...OUTCOMES.map((outcome) => count(sum(its, outcome))))
      }),
    )
    byDay.take(sends)
    return sent
  }
  return { node: panel('Messages', {}, chart.node, legend, none, node, byDay.node), take }
}
