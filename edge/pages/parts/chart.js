// Charts over time, drawn by uPlot, and heat maps and timelines.

import uPlot from '/pages/vendor/uPlot.esm.js'
import { h, svg } from './dom.js'
import { formatDateTime } from './format.js'
import { scrollBox, table } from './table.js'

const TONES = ['--tone0', '--tone1', '--tone2', '--tone3', '--tone4', '--tone5']
const MAX_TABLE_ROWS = 200
const charts = new Set()

// Canvas colours do not follow the theme by themselves.
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => charts.forEach((redraw) => redraw()))

const DAY_S = 86_400
const formatDay = (ms) => new Date(ms).toLocaleDateString('en-GB', { dateStyle: 'medium', timeZone: 'UTC' })

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()

/** Resolves `light-dark()` and other colours to one that a canvas understands. */
function resolveColour(name) {
  const probe = h('span', { class: 'probe' })
  probe.style.color = `var(${name})`
  document.body.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color || colour(name)
}

/** Formats a tick of the time axis: the time of day, or the date at midnight and of whole days. */
function formatTimeTick(seconds, step) {
  const time = new Date(seconds * 1000)
  const isMidnight = time.getHours() === 0 && time.getMinutes() === 0
  if (step >= 86_400 || isMidnight) return time.toLocaleDateString('en-GB', { day: 'numeric', month: 'short' })
  return time.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit', second: step < 60 ? '2-digit' : undefined })
}

/**
 * Makes a chart of values over time. Options:
 * - `title`: its name; `format(value)`: the text of a value, and `formatTick(value)` that of the axis if it differs;
 * - `series`: of `{ name, tone, kind }`, where `tone` is a custom property such as `--bad`, and `kind` is `line`, `area` or `bars`;
 * - `isDaily`: times are days in UTC, which bars do not leave at the edges;
 * - `sync`: charts with the same key share the cursor; `height` in CSS pixels; `isStacked`; `marks`: of `{ at, text }`, vertical lines.
 *
 * `draw({ times, values })` takes times in ms and one list of values for each series; null is a gap. The values are
 * also in a table, for keyboards and screen readers.
 */
export function timeChart({ title, series, format, formatTick = format, sync, height = 170, isStacked = false, isDaily = false }) {
  const box = h('div', { class: 'plot', role: 'img', 'aria-label': title })
  const rows = h('div', {})
  const details = h('details', { class: 'values' }, h('summary', {}, 'Values'), rows)
  const node = h('figure', { class: 'chart' }, h('figcaption', {}, title), box, details)
  const formatAt = isDaily ? formatDay : formatDateTime
  let plot = null
  let shown = null
  let marks = []

  const make = () => {
    plot?.destroy()
    const [ink, line] = [resolveColour('--soft'), resolveColour('--line')]
    const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: '12px system-ui', size: 34 }
    plot = new uPlot(
      {
        width: Math.max(200, box.clientWidth),
        height,
        cursor: { sync: sync === undefined ? undefined : { key: sync }, drag: { x: false, y: false }, points: { size: 6 } },
        legend: { live: true },
        ...(isDaily && { tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'UTC') }),
        scales: { x: { time: true, ...(isDaily && { range: (_, low, high) => [low - DAY_S / 2, high + DAY_S / 2] }) }, y: { range: (_, _low, high) => [0, high > 0 ? high * 1.08 : 1] } },
        axes: [timeAxis(axis), { ...axis, size: 64, values: (_, ticks) => ticks.map((value) => formatTick(value)) }],
        series: [{ label: 'Time', value: (_, seconds) => (seconds === null ? '–' : formatAt(seconds * 1000)) }, ...series.map(seriesOptions)],
        hooks: { draw: [drawMarks] },
      },
      dataOf(shown),
      box,
    )
  }
  const timeAxis = (axis) =>
    isDaily
      ? { ...axis, values: (_, ticks) => ticks.map((seconds) => formatDay(seconds * 1000)), space: 90 }
      : { ...axis, size: 30, values: (_, ticks, _axis, _space, step) => ticks.map((seconds) => formatTimeTick(seconds, step)) }
  const seriesOptions = ({ name, tone, kind = 'line' }, i) => {
    const stroke = resolveColour(tone ?? TONES[i % TONES.length])
    const raw = (index) => (index === null || shown === null ? null : shown.values[i][index])
    return {
      label: name,
      stroke,
      width: kind === 'bars' ? 0 : 1.5,
      fill: kind === 'line' ? undefined : kind === 'bars' || isStacked ? stroke : stroke.replace('rgb(', 'rgba(').replace(')', ', 0.18)'),
      paths: kind === 'bars' ? uPlot.paths.bars({ size: [0.8, 60] }) : undefined,
      points: { show: false },
      value: (_, _value, _series, index) => (raw(index) === null || raw(index) === undefined ? '–' : format(raw(index))),
    }
  }
  // Stacked series are drawn as their running sums, the largest first.
  const dataOf = ({ times, values }) => {
    const seconds = times.map((at) => at / 1000)
    if (!isStacked) return [seconds, ...values]
    return [seconds, ...values.map((_, i) => times.map((_at, at) => values.slice(i).reduce((sum, layer) => sum + (layer[at] ?? 0), 0)))]
  }
  const drawMarks = ({ ctx, bbox, valToPos }) => {
    for (const { at, text } of marks) {
      const x = valToPos.call(plot, at / 1000, 'x', true)
      if (x < bbox.left || x > bbox.left + bbox.width) continue
      ctx.save()
      ctx.strokeStyle = resolveColour('--warn')
      ctx.fillStyle = resolveColour('--warn')
      ctx.setLineDash([4, 4])
      ctx.beginPath()
      ctx.moveTo(x, bbox.top)
      ctx.lineTo(x, bbox.top + bbox.height)
      ctx.stroke()
      ctx.fillText(text, x + 4, bbox.top + 12)
      ctx.restore()
    }
  }
  const fillTable = () => {
    if (!details.open || shown === null) return
    const { node: values, body, row } = table(title, [['Time', 'name'], ...series.map(({ name }) => [name, 'number'])])
    const from = Math.max(0, shown.times.length - MAX_TABLE_ROWS)
    for (let i = shown.times.length - 1; i >= from; i--) body.append(row(formatAt(shown.times[i]), ...shown.values.map((list) => (list[i] === null ? null : format(list[i])))))
    rows.replaceChildren(scrollBox(`${title}: values`, values))
  }
  const redraw = () => {
    if (!node.isConnected) return charts.delete(redraw)
    if (shown !== null) make()
  }
  details.addEventListener('toggle', fillTable)
  // A plot needs the width that its box has on the page.
  const makeOnPage = () => plot === null && shown !== null && box.clientWidth > 0 && make()
  new ResizeObserver(() => {
    plot?.setSize({ width: Math.max(200, box.clientWidth), height })
    makeOnPage()
  }).observe(box)
  return {
    node,
    draw: (data, given = []) => {
      shown = data
      marks = given
      charts.add(redraw)
      if (plot !== null) plot.setData(dataOf(data))
      // Often the box joins the page before the next frame.
      else if (makeOnPage() === false) requestAnimationFrame(makeOnPage)
      fillTable()
    },
  }
}

/**
 * Makes a heat map. `draw({ columns, rows, values })` takes labels and one list of numbers for each row, top first. Darker
 * cells are greater. `format(value, row, column)` is the text of a cell.
 */
export function heatMap({ title, format }) {
  const box = h('div', { class: 'heat', role: 'img', 'aria-label': title })
  const node = h('figure', { class: 'chart' }, h('figcaption', {}, title), box)
  const draw = ({ columns, rows, values }) => {
    const most = Math.max(1, ...values.flat())
    const cells = values.flatMap((list, y) =>
      list.flatMap((value, x) => {
        if (value === 0) return []
        const share = Math.log1p(value) / Math.log1p(most)
        return svg('rect', { class: 'cell', x, y, width: 1, height: 1, 'fill-opacity': (0.12 + 0.88 * share).toFixed(2) }, svg('title', {}, format(value, rows[y], columns[x])))
      }),
    )
    const picture = svg('svg', { viewBox: `0 0 ${columns.length} ${rows.length}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' }, ...cells)
    const labels = h('div', { class: 'rows' }, ...rows.map((text) => h('span', {}, text)))
    box.replaceChildren(labels, picture, h('span', {}), h('div', { class: 'ends soft' }, h('span', {}, columns[0] ?? ''), h('span', {}, columns.at(-1) ?? '')))
  }
  return { node, draw }
}

/**
 * Makes a timeline. Each item is a row `{ label, href, spans, note, more }`; `more` are nodes below the row. Its `spans` of
 * `{ from, to, kind, text }` are in ms on a shared scale. Their `kind` is a CSS class, such as `waited` or `ran`.
 */
export function timeline(title, items) {
  const [from, to] = [Math.min(...items.flatMap(({ spans }) => spans.map((span) => span.from))), Math.max(...items.flatMap(({ spans }) => spans.map((span) => span.to)))]
  const scale = 1000 / Math.max(1, to - from)
  const rowOf = ({ label, href, spans, note, more = [] }) =>
    h(
      'li',
      {},
      h('span', { class: 'line' }, href === undefined ? label : h('a', { href }, label), h('span', { class: 'soft' }, note ?? '')),
      svg(
        'svg',
        { class: 'span', viewBox: '0 0 1000 10', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
        ...spans.map((span) => svg('rect', { class: span.kind, x: ((span.from - from) * scale).toFixed(1), width: Math.max(2, (span.to - span.from) * scale).toFixed(1), height: 10 }, svg('title', {}, span.text ?? ''))),
      ),
      ...more,
    )
  return h('ol', { class: 'timeline', 'aria-label': title }, ...items.map(rowOf))
}
