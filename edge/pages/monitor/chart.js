// How numbers changed over time: without axes, because the figures beside them have the values.

import { svg } from './dom.js'

const WIDTH = 120
const HEIGHT = 28

/**
 * A chart whose `draw(lines, label)` takes lines of `{values, kind}`, oldest value first; null is a gap. All lines
 * share one scale, from zero up; far outliers are cut off, or the rest would not be visible. `kind` is the class:
 * `area`, `line`, `faint` or `marks` (only where the value is above zero).
 */
export function sparkline() {
  const title = svg('title')
  const shapes = svg('g')
  const node = svg(
    'svg',
    { class: 'spark', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'img' },
    title,
    shapes,
  )
  let drawn = ''
  const draw = (lines, label) => {
    const key = JSON.stringify(lines)
    title.textContent = label
    if (key === drawn) return
    drawn = key
    const all = lines.flatMap(({ values }) => values.filter((value) => value !== null)).sort((a, b) => a - b)
    const most = Math.max(1e-9, Math.min(all.at(-1) ?? 0, (all[Math.floor(all.length * 0.97)] || Infinity) * 1.5))
    shapes.replaceChildren(svg('path', { class: 'ground', d: `M0 ${HEIGHT - 0.5}H${WIDTH}` }), ...lines.map((line) => shape(line, most)))
  }
  return { node, draw }
}

function shape({ values, kind }, most) {
  const step = WIDTH / (values.length - 1)
  const y = (value) => (HEIGHT - 1 - Math.min(1, value / most) * (HEIGHT - 3)).toFixed(1)
  if (kind === 'marks')
    return svg('path', { class: kind, d: values.map((value, i) => (value > 0 ? `M${(i * step).toFixed(1)} ${HEIGHT}v-4` : '')).join('') })
  let path = ''
  let pen = false
  for (const [i, value] of values.entries()) {
    if (value === null) {
      pen = false
      continue
    }
    // A single value between gaps still shows as a dot.
    path += `${pen ? 'L' : 'M'}${(i * step).toFixed(1)} ${y(value)}${pen ? '' : 'h.6'}`
    pen = true
  }
  if (kind === 'area') path += `V${HEIGHT}H0Z`
  return svg('path', { class: kind, d: path })
}

const BARS_HEIGHT = 100
// Of the width of a bar.
const GAP = 0.2

/**
 * Bars of one width each that are stacked from below: `draw(layers, label)` takes layers of `{values, kind}`, lowest first,
 * each with a value for each bar. `kind` is the class.
 */
export function stackedBars() {
  const title = svg('title')
  const shapes = svg('g')
  const node = svg('svg', { class: 'bars', preserveAspectRatio: 'none', role: 'img' }, title, shapes)
  const draw = (layers, label) => {
    const length = layers[0]?.values.length ?? 1
    const tops = Array.from({ length }, () => 0)
    const totals = tops.map((_, i) => layers.reduce((sum, { values }) => sum + values[i], 0))
    const scale = (BARS_HEIGHT - 1) / Math.max(1e-9, ...totals)
    const rects = layers.flatMap(({ values, kind }) =>
      values.flatMap((value, i) => {
        if (value <= 0) return []
        tops[i] += value
        const y = BARS_HEIGHT - tops[i] * scale
        return svg('rect', { class: kind, x: i + GAP / 2, y: y.toFixed(2), width: 1 - GAP, height: (value * scale).toFixed(2) })
      }),
    )
    node.setAttribute('viewBox', `0 0 ${length} ${BARS_HEIGHT}`)
    title.textContent = label
    shapes.replaceChildren(svg('path', { class: 'ground', d: `M0 ${BARS_HEIGHT - 0.5}H${length}` }), ...rects)
  }
  return { node, draw }
}
