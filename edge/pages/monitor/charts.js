// Page of charts by queue: throughput, failures, waits and run times over a window, with a shared cursor.

import { button } from '../parts/actions.js'
import { call, withQuery } from '../parts/api.js'
import { heatMap, timeChart } from '../parts/chart.js'
import { replaceAddress } from '../parts/filters.js'
import { h, panel, setText } from '../parts/dom.js'
import { formatCount, formatDateTime, formatDuration, setClock } from '../parts/format.js'
import { emptyNotice, failure, skeleton } from '../parts/states.js'

const WINDOWS = { '10m': '10 min', '1h': '1 hour', '24h': '24 hours', '7d': '7 days' }
// Milliseconds between two reads, by window.
const READ_MS = { '10m': 10_000, '1h': 30_000, '24h': 120_000, '7d': 300_000 }
// Number of queues with a line of their own. All others add up to one.
const MAX_LINES = 5
// Lengths of spans, by window.
const SPANS = { '10m': '10 s', '1h': 'minute', '24h': '20 min', '7d': '2 h' }
const SYNC = 'queues'
const OTHERS = 'all others'

export function page() {
  const params = new URLSearchParams(location.search)
  const state = {
    window: params.get('window') in WINDOWS ? params.get('window') : '1h',
    queue: params.get('queue') ?? '',
    measure: params.get('measure') === 'waits' ? 'waits' : 'runs',
    shown: '',
  }
  const content = h('div', { class: 'parts' }, skeleton(8), skeleton(8))
  let [parts, timer] = [null, null]

  const load = async () => {
    clearTimeout(timer)
    const { window } = state
    try {
      const data = await call('GET', withQuery('/api/v1/queues', { window, times: true }))
      if (window !== state.window) return
      setClock(data.at)
      show(data)
    } catch (error) {
      parts = null
      content.replaceChildren(failure(error, load))
    }
    clearTimeout(timer)
    timer = setTimeout(() => (document.hidden ? null : load()), READ_MS[window])
  }
  const show = (data) => {
    const lines = linesOf(data.queues)
    const key = [data.window, ...lines.map(({ name }) => name)].join(' ')
    if (lines.length === 0) {
      parts = null
      return content.replaceChildren(h('section', { class: 'panel' }, emptyNotice('No job ended in this window. Choose a longer one, or wait for jobs.')))
    }
    // The queues of a chart are fixed, so other queues need other charts.
    if (parts === null || key !== state.shown) {
      state.shown = key
      parts = makeCharts(lines, state, SPANS[data.window])
      content.replaceChildren(...parts.nodes)
    }
    parts.update(data, lines)
  }
  const bar = windowBar(state, load)
  document.addEventListener('visibilitychange', () => document.hidden || load())
  return [bar, { node: content, load }]
}

/** Makes the buttons that choose the window. */
function windowBar(state, load) {
  const buttons = Object.entries(WINDOWS).map(([value, text]) => [value, button(text, () => choose(value), { label: `The last ${text}` })])
  const mark = () => buttons.forEach(([value, node]) => node.setAttribute('aria-pressed', String(value === state.window)))
  const choose = (value) => {
    state.window = value
    replaceAddress({ window: value === '1h' ? null : value })
    mark()
    return load()
  }
  mark()
  return h('div', { class: 'actions windows', role: 'group', 'aria-label': 'Window' }, ...buttons.map(([, node]) => node))
}

/** Returns the busiest queues, and one entry for all others. */
function linesOf(queues) {
  const busy = queues.filter(({ ended, repeated }) => ended + repeated > 0).toSorted((a, b) => b.ended - a.ended || (a.queue < b.queue ? -1 : 1))
  const lines = busy.slice(0, MAX_LINES).map((queue) => ({ name: queue.queue, queues: [queue] }))
  return busy.length > MAX_LINES ? [...lines, { name: OTHERS, queues: busy.slice(MAX_LINES) }] : lines
}

function makeCharts(lines, state, span) {
  const names = lines.map(({ name }, i) => ({ name, tone: `--tone${i}` }))
  // Percentiles of several queues do not add up.
  const single = names.filter(({ name }) => name !== OTHERS)
  const charts = {
    ended: timeChart({
      title: 'Jobs ended per minute',
      series: names.map((one) => ({ ...one, kind: 'area' })),
      format: formatRate,
      sync: SYNC,
      height: 220,
      isStacked: true,
    }),
    failed: timeChart({ title: `Jobs failed each ${span}`, series: names.map((one) => ({ ...one, kind: 'line' })), format: formatCount, sync: SYNC }),
    median: timeChart({ title: 'Wait time, median', series: single, format: formatSeconds, sync: SYNC }),
    high: timeChart({ title: 'Wait time, 95th percentile', series: single, format: formatSeconds, sync: SYNC }),
    run: timeChart({ title: 'Run time, median', series: single, format: formatSeconds, sync: SYNC }),
    slow: timeChart({ title: 'Run time, 95th percentile', series: single, format: formatSeconds, sync: SYNC }),
  }
  const heat = makeHeat(state)
  const card = (...nodes) => h('section', { class: 'panel', 'aria-label': nodes[0].querySelector('figcaption').textContent }, ...nodes)
  const update = (data, now) => {
    const times = timesOf(data)
    // The last span is still open, and its counts would look like a drop.
    const each = (read) => now.map(({ queues }) => times.map((_, i) => queues.reduce((sum, queue) => sum + read(queue, i), 0)))
    const ofSingle = (read) => now.filter(({ name }) => name !== OTHERS).map(({ queues: [queue] }) => times.map((_, i) => read(queue.times, i) ?? null))
    charts.ended.draw({ times, values: each(({ history }, i) => (history.ended[i] * 60) / data.span_seconds) })
    charts.failed.draw({ times, values: each(({ history }, i) => history.failed[i]) })
    charts.median.draw({ times, values: ofSingle((found, i) => found?.wait[i]?.p50) })
    charts.high.draw({ times, values: ofSingle((found, i) => found?.wait[i]?.p95) })
    charts.run.draw({ times, values: ofSingle((found, i) => found?.run[i]?.p50) })
    charts.slow.draw({ times, values: ofSingle((found, i) => found?.run[i]?.p95) })
    heat.update(data, times)
  }
  const pairs = [
    [charts.median, charts.high],
    [charts.run, charts.slow],
  ].map((pair) => h('div', { class: 'columns' }, ...pair.map(({ node }) => card(node))))
  return { nodes: [card(charts.ended.node), card(charts.failed.node), ...pairs, heat.node], update }
}

/** Returns the starts of all complete spans in ms. */
function timesOf({ at, span_seconds, queues }) {
  const spans = queues[0]?.history.ended.length ?? 0
  const last = Math.floor(Date.parse(at) / 1000 / span_seconds)
  return Array.from({ length: Math.max(0, spans - 1) }, (_, i) => (last - spans + 1 + i) * span_seconds * 1000)
}

const formatSeconds = (seconds) => formatDuration(seconds * 1000)
const formatRate = (perMinute) => (perMinute >= 10 || perMinute === 0 ? formatCount(Math.round(perMinute)) : perMinute.toFixed(1))

/** Makes the panel of the heat map: how many jobs of a queue took how long, by span. */
function makeHeat(state) {
  const queue = h('select', {})
  const measure = h('select', {}, h('option', { value: 'runs' }, 'run times'), h('option', { value: 'waits' }, 'wait times'))
  measure.value = state.measure
  const map = heatMap({ title: 'Jobs by time', format: (count, row, column) => `${formatCount(count)} jobs, ${row}, ${column}` })
  const note = h('p', { class: 'soft' })
  let [data, times] = [null, []]
  const draw = () => {
    const { rows, columns, values, total } = heatOf(data, times, queue.value, measure.value)
    setText(
      note,
      total === 0
        ? 'No attempt ended in this window.'
        : `${formatCount(total)} attempts. Darker cells have more of them; the scale is logarithmic. Point at a cell to read it.`,
    )
    map.node.hidden = total === 0
    map.draw({ rows, columns, values })
  }
  const choose = () => {
    Object.assign(state, { queue: queue.value, measure: measure.value })
    replaceAddress({ queue: queue.value, measure: measure.value === 'runs' ? null : measure.value })
    draw()
  }
  queue.addEventListener('change', choose)
  measure.addEventListener('change', choose)
  const update = (now, spans) => {
    ;[data, times] = [now, spans]
    const names = now.queues.filter((one) => one.times !== null).map((one) => one.queue)
    queue.replaceChildren(h('option', { value: '' }, 'all queues'), ...names.map((name) => h('option', { value: name }, name)))
    queue.value = names.includes(state.queue) ? state.queue : ''
    draw()
  }
  const tools = [h('label', { class: 'inline' }, 'Show ', measure), h('label', { class: 'inline' }, 'of ', queue)]
  return { node: panel('Distribution', { tools }, note, map.node), update }
}

/** Returns the cells of the heat map, with the longest times on top, without bounds that no attempt reached. */
function heatOf({ queues, bounds }, times, name, measure) {
  const chosen = queues.filter(({ queue, times: own }) => own !== null && (name === '' || queue === name))
  const sums = times.map((_, i) => bounds.concat(0).map((__, bound) => chosen.reduce((sum, { times: own }) => sum + (own[measure][i][bound] ?? 0), 0)))
  const used = bounds.concat(0).map((_, bound) => sums.some((counts) => counts[bound] > 0))
  const [low, high] = [used.indexOf(true), used.lastIndexOf(true)]
  if (low === -1) return { rows: [], columns: [], values: [], total: 0 }
  const range = Array.from({ length: high - low + 1 }, (_, i) => high - i)
  return {
    rows: range.map((bound) => (bound === bounds.length ? `over ${formatSeconds(bounds.at(-1))}` : `up to ${formatSeconds(bounds[bound])}`)),
    columns: times.map((at) => formatDateTime(at)),
    values: range.map((bound) => sums.map((counts) => counts[bound])),
    total: sums.flat().reduce((a, b) => a + b, 0),
  }
}
