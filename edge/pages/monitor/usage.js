// Page of storage and spending: growth of tables, model costs and sent messages.

import { call } from '../parts/api.js'
import { timeChart } from '../parts/chart.js'
import { h } from '../parts/dom.js'
import { formatByteChange, formatBytes, formatCount, formatDays, formatDollars } from '../parts/format.js'
import { sparkline } from '../parts/spark.js'
import { section } from '../parts/states.js'
import { scrollBox, table, tiles } from '../parts/table.js'
import { makeSpending } from './spending.js'

const DAY_MS = 86_400_000
// Number of tables with a colour of their own. All others add up to one.
const MAX_LAYERS = 5
// Smaller tables are folded, unless there are only a few others.
const SMALL_BYTES = 1 << 20
const MIN_SHOWN = 8

export function page() {
  const figures = tiles([
    ['Stored', 'in tables'],
    ['Growth', 'in 7 days'],
    ['Expired', 'beyond retention'],
    ['Model costs', 'in the period'],
    ['Messages', 'sent in the period'],
  ])
  let reading = null
  const readTables = () => (reading ??= call('GET', '/api/v1/system/tables').finally(() => (reading = null)))
  const spending = makeSpending(readTables, (cost, sent) => {
    figures.set('Model costs', formatDollars(cost))
    figures.set('Messages', formatCount(sent))
  })
  const growth = section({ title: 'Growth', read: readTables, show: (storage) => showGrowth(storage, figures), rows: 6 })
  const tables = section({ title: 'Tables', read: readTables, show: ({ tables: all }) => showTables(all), rows: 10 })
  return [figures.node, spending, growth, tables]
}

function showGrowth({ at, bytes, tables }, figures) {
  const weeks = tables.flatMap(({ growth }) => growth.week?.bytes ?? [])
  figures.set('Stored', formatBytes(bytes))
  figures.set('Growth', weeks.length === 0 ? '–' : formatByteChange(weeks.reduce((sum, n) => sum + n, 0)))
  figures.set('Expired', formatBytes(tables.reduce((sum, { retention }) => sum + (retention?.bytes ?? 0), 0)))
  const days = tables[0]?.bytes_by_day.length ?? 0
  const measured = Array.from({ length: days }, (_, i) => tables.some(({ bytes_by_day: sizes }) => sizes[i] !== null))
  const first = measured.indexOf(true)
  if (first === -1 || days - first < 2) return [h('p', { class: 'soft' }, 'Sizes are measured hourly. The chart appears once there are sizes of two days.')]
  const [largest, others] = [tables.slice(0, MAX_LAYERS), tables.slice(MAX_LAYERS)]
  const today = Math.floor(Date.parse(at) / DAY_MS) * DAY_MS
  const times = Array.from({ length: days - first }, (_, i) => today - (days - 1 - first - i) * DAY_MS)
  const sizeOf = ({ bytes_by_day: sizes }) => times.map((_, i) => sizes[first + i])
  const rest = times.map((_, i) => others.reduce((sum, { bytes_by_day: sizes }) => sum + (sizes[first + i] ?? 0), 0))
  const chart = timeChart({
    title: 'Size of tables by day',
    series: [...largest.map(({ name }, i) => ({ name, tone: `--tone${i}`, kind: 'area' })), { name: 'all others', tone: '--tone5', kind: 'area' }],
    format: formatBytes,
    height: 240,
    isStacked: true,
  })
  chart.draw({ times, values: [...largest.map(sizeOf), rest] }, cutsOf(largest, today, times[0]))
  return [chart.node, h('p', { class: 'soft' }, 'A dashed line marks where the retention of a table ends. Older rows are pruned hourly.')]
}

/** Returns the marks of retentions that end within the chart. */
function cutsOf(tables, today, from) {
  const cuts = Map.groupBy(
    tables.filter(({ retention }) => retention?.days > 0),
    ({ retention }) => today - retention.days * DAY_MS,
  )
  return [...cuts].filter(([at]) => at > from).map(([at, its]) => ({ at, text: its.map(({ name }) => name).join(', ') }))
}

function showTables(tables) {
  const isSmall = ({ bytes }, i) => bytes < SMALL_BYTES && i >= MIN_SHOWN
  const small = tables.filter(isSmall)
  const shown = tables.filter((one, i) => !isSmall(one, i))
  const size = formatBytes(small.reduce((sum, { bytes }) => sum + bytes, 0))
  const fold = h('details', {}, h('summary', {}, `${formatCount(small.length)} small tables, ${size}`))
  fold.addEventListener('toggle', () => fold.append(tableOf('Small tables', small)), { once: true })
  return [
    tableOf('Tables', shown),
    small.length === 0 ? null : fold,
    h(
      'p',
      { class: 'soft' },
      'Sizes are measured hourly. Expired rows are pruned hourly. PostgreSQL reuses their space; only pruning a whole month returns space to the system.',
    ),
  ]
}

function tableOf(caption, tables) {
  const { node, body, row } = table(caption, [
    ['Table', 'name'],
    ['Rows (estimate)', 'number'],
    ['Size', 'number'],
    ['30 days', 'chart small'],
    ['Today', 'number'],
    ['7 days', 'number'],
    ['30 days', 'number'],
    ['Oldest day', 'number'],
    ['Retention', 'number'],
    ['Expired', 'number'],
  ])
  body.append(...tables.map((one) => row(...cellsOf(one))))
  return scrollBox(caption, node)
}

function cellsOf({ name, rows, bytes, growth, bytes_by_day, oldest_day, retention }) {
  const { node: trend, draw } = sparkline()
  draw([{ values: bytes_by_day, kind: 'line' }], `Size of ${name} in the last 30 days`)
  return [
    h('strong', {}, name),
    muted(formatCount(rows)),
    formatBytes(bytes),
    trend,
    growthCell(growth.day),
    growthCell(growth.week),
    growthCell(growth.month),
    muted(oldest_day ?? '–'),
    h('span', { title: retention?.setting }, muted(retentionText(retention))),
    muted(expiredText(retention)),
  ]
}

/** Mutes a text that is zero or a dash. */
const muted = (text) => h('span', { class: { 0: 'zero', '–': 'zero absent' }[text] }, text)

const growthCell = (growth) => muted(growth === null ? '–' : formatByteChange(growth.bytes))

function retentionText(retention) {
  if (retention === null) return '–'
  return retention.days === null ? 'forever' : formatDays(retention.days)
}

function expiredText(retention) {
  if (retention === null || retention.rows === null) return '–'
  return retention.rows === 0
    ? '0'
    : h('span', { class: 'stack end' }, formatBytes(retention.bytes), h('span', { class: 'soft' }, `${formatCount(retention.rows)} rows`))
}
