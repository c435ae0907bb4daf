// Panels of model costs and sent messages by day.

import { call } from '../parts/api.js'
import { timeChart } from '../parts/chart.js'
import { replaceAddress } from '../parts/filters.js'
import { announce, h, panel } from '../parts/dom.js'
import { formatCount, formatDollars } from '../parts/format.js'
import { emptyNotice, failure, skeleton } from '../parts/states.js'
import { scrollBox, table } from '../parts/table.js'

const PERIODS = [7, 30, 90, 366]
const DEFAULT_PERIOD = '30'
// Number of models with a colour of their own; all others share one.
const MAX_COLOURS = 5
const DAY_MS = 86_400_000

/**
 * Makes two panels and a choice of days. `readTables` returns the tables with their retention. After each choice,
 * `onTotals` receives the cost and the number of sent messages.
 */
export function makeSpending(readTables, onTotals) {
  const [models, sends] = [h('div', { class: 'body' }, skeleton(6)), h('div', { class: 'body' }, skeleton(6))]
  const select = h('select', {}, ...PERIODS.map((n) => h('option', { value: n }, n === 366 ? 'year' : `${n} days`)))
  select.value = new URLSearchParams(location.search).get('days') ?? DEFAULT_PERIOD
  if (select.value === '') select.value = DEFAULT_PERIOD
  const load = async () => {
    try {
      const [spent, { tables }] = await Promise.all([call('GET', `/api/v1/system/spending?days=${select.value}`), readTables()])
      const days = daysOf(spent)
      onTotals(showModels(models, spent.models, days, cutOf(tables, 'ai_usage')), showSends(sends, spent.sends, days, cutOf(tables, 'comms_send')))
    } catch (error) {
      models.replaceChildren(failure(error, load))
      sends.replaceChildren()
    }
  }
  select.addEventListener('change', async () => {
    replaceAddress({ days: select.value === DEFAULT_PERIOD ? null : select.value })
    await load()
    announce(`Showing the last ${select.selectedOptions[0].textContent}`)
  })
  const period = h('label', { class: 'inline' }, 'The last ', select)
  return { node: h('div', { class: 'parts' }, period, h('div', { class: 'columns' }, panel('Model costs', {}, models), panel('Messages', {}, sends))), load }
}

/** Returns all days from `from` to `to` as ISO dates. */
function daysOf({ from, to }) {
  const length = (Date.parse(to) - Date.parse(from)) / DAY_MS + 1
  return Array.from({ length }, (_, i) => new Date(Date.parse(from) + i * DAY_MS).toISOString().slice(0, 10))
}

/** Returns the time before which rows of a table are pruned; null if they are kept. */
function cutOf(tables, name) {
  const days = tables.find((one) => one.name === name)?.retention?.days
  return days > 0 ? Date.now() - days * DAY_MS : null
}

/** Makes a chart of stacked values by day, with the retention's cut as a mark. */
function makeChart(title, kind, layers, days, format, cut) {
  const chart = timeChart({ title, series: layers.map(({ name, tone }) => ({ name, tone, kind })), format, isStacked: true, isDaily: true, height: 190 })
  const times = days.map((day) => Date.parse(day))
  const marks = cut !== null && cut > times[0] ? [{ at: cut, text: 'pruned before' }] : []
  chart.draw({ times, values: layers.map(({ values }) => values) }, marks)
  return chart.node
}

/** Makes a table that builds its rows only when opened, because it may be long. */
function makeByDay(caption, columns, rows) {
  const { node, body, row } = table(caption, columns)
  const details = h('details', {}, h('summary', {}, 'By day'), scrollBox(caption, node))
  details.addEventListener('toggle', () => body.append(...rows.map((cells) => row(...cells))), { once: true })
  return details
}

const swatch = (tone) => {
  const node = h('span', { class: 'swatch', 'aria-hidden': 'true' })
  node.style.background = `var(${tone})`
  return node
}
const sum = (items, field) => items.reduce((total, item) => total + (item[field] ?? 0), 0)
const latestFirst = (a, b) => (a.day < b.day ? 1 : a.day > b.day ? -1 : 0)
const toneOf = (i) => `--tone${Math.min(i, MAX_COLOURS)}`

// Further models are folded.
const MAX_MODELS = 10

const MODEL_COLUMNS = [
  ['Model', 'wide'],
  ['Requests', 'number'],
  ['Tokens', 'number'],
  ['Cost', 'number'],
]

/** Shows the costs of models, and returns their total. */
function showModels(body, models, days, cut) {
  const cost = models.some((model) => model.cost !== null) || models.length === 0 ? sum(models, 'cost') : null
  if (models.length === 0) {
    body.replaceChildren(emptyNotice('No model was used in this period.'))
    return cost
  }
  const tables = [modelTable('Model costs', models.slice(0, MAX_MODELS), 0)]
  if (models.length > MAX_MODELS)
    tables.push(
      h(
        'details',
        {},
        h('summary', {}, `${formatCount(models.length - MAX_MODELS)} more models`),
        modelTable('More models', models.slice(MAX_MODELS), MAX_MODELS),
      ),
    )
  const entries = models.flatMap(({ model_id, days: its }) => its.map((entry) => ({ ...entry, model_id }))).sort(latestFirst)
  const byDay = makeByDay(
    'Model costs by day',
    [['Day', 'name'], ...MODEL_COLUMNS],
    entries.map(({ day, model_id, requests, tokens, cost: dayCost }) => [day, model_id, formatCount(requests), formatCount(tokens), formatDollars(dayCost)]),
  )
  const title = `Model costs by day, ${formatDollars(cost)} in total`
  body.replaceChildren(...[cost ? makeChart(title, 'area', modelLayers(models, days), days, formatDollars, cut) : null, ...tables, byDay].filter(Boolean))
  return cost
}

function modelTable(caption, models, from) {
  const { node, body, row } = table(caption, MODEL_COLUMNS)
  body.append(...models.map((model, i) => row(...modelCells(model, toneOf(from + i)))))
  return scrollBox(caption, node)
}

function modelLayers(models, days) {
  const valuesOf = (its) => days.map((day) => its.reduce((total, model) => total + (model.days.find((entry) => entry.day === day)?.cost ?? 0), 0))
  // Vendors may share the name of a model.
  const nameOf = ({ model_id, vendor }) => (models.filter((other) => other.model_id === model_id).length > 1 ? `${model_id} (${vendor})` : model_id)
  const own = models.slice(0, MAX_COLOURS).map((model, i) => ({ name: nameOf(model), tone: toneOf(i), values: valuesOf([model]) }))
  return models.length > MAX_COLOURS ? [...own, { name: 'all others', tone: toneOf(MAX_COLOURS), values: valuesOf(models.slice(MAX_COLOURS)) }] : own
}

const modelCells = ({ vendor, model_id, requests, tokens, cost, unpriced_requests }, tone) => [
  h('span', {}, swatch(tone), h('strong', {}, model_id), h('span', { class: 'soft' }, ` ${vendor}`)),
  formatCount(requests),
  formatCount(tokens),
  h(
    'span',
    {},
    formatDollars(cost),
    cost !== null && unpriced_requests > 0 ? h('span', { class: 'soft' }, ` and ${formatCount(unpriced_requests)} without a price`) : '',
  ),
]

const TONES = {
  delivered: '--tone3',
  sent: '--tone0',
  failed: '--bad',
  bounced: '--tone1',
  complained: '--tone4',
  unknown: '--warn',
  cancelled: '--tone2',
  waiting: '--tone5',
}
const OUTCOMES = Object.keys(TONES)
// Outcomes that only messages accepted by the provider can have.
const ACCEPTED = ['delivered', 'sent', 'bounced', 'complained']
const CHANNELS = { email: 'Email', sms: 'Text messages', call: 'Calls' }

/** Shows the messages by outcome, and returns how many were sent. */
function showSends(body, sends, days, cut) {
  const sent = ACCEPTED.reduce((all, outcome) => all + sum(sends, outcome), 0)
  if (sends.length === 0) {
    body.replaceChildren(emptyNotice('No messages were sent in this period.'))
    return sent
  }
  // There are more outcomes than channels, so the channels are the columns.
  const used = OUTCOMES.filter((outcome) => sum(sends, outcome) > 0)
  const channels = Object.keys(CHANNELS).filter((channel) => sends.some((entry) => entry.channel === channel))
  const columns = channels.map((channel) => [CHANNELS[channel], 'number'])
  const countsOf = (its, outcome) => channels.map((channel) => formatCount(sum(its.filter((entry) => entry.channel === channel), outcome)))
  const ofDay = Map.groupBy(sends, ({ day }) => day)
  const layers = used.map((outcome) => ({ name: outcome, tone: TONES[outcome], values: days.map((day) => sum(ofDay.get(day) ?? [], outcome)) }))
  const { node, body: rows, row } = table('Messages', [['Outcome', 'name'], ...columns])
  for (const outcome of used) rows.append(row(h('span', {}, swatch(TONES[outcome]), h('strong', {}, outcome)), ...countsOf(sends, outcome)))
  const byDay = makeByDay(
    'Messages by day',
    [['Day', 'name'], ['Outcome', ''], ...columns],
    [...ofDay].sort(([a], [b]) => (a < b ? 1 : -1)).flatMap(([day, its]) => used.filter((outcome) => sum(its, outcome) > 0).map((outcome) => [day, outcome, ...countsOf(its, outcome)])),
  )
  body.replaceChildren(
    makeChart(`Messages by day, ${formatCount(sent)} sent in total`, 'bars', layers, days, formatCount, cut),
    scrollBox('Messages', node),
    byDay,
  )
  return sent
}
