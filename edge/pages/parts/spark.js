// Draws charts of numbers over time. The charts have no axes, because the figures next to them give the values.

import { svg } from './dom.js'

const WIDTH = 120
const HEIGHT = 28

/**
 * Makes a line chart. Its `draw(lines, label)` takes lines of `{values, kind}`, oldest value first; null is a gap. All
 * lines share one scale that starts at zero. Far outliers are clipped, because they would flatten the rest. `kind` is
 * the CSS class: `area`, `line` or `marks` (a tick at each value above zero).
 */
export function sparkline() {
  const title = svg('title', {}, 'No figures yet')
  const shapes = svg('g')
  const node = svg(
    'svg',
    { class: 'spark', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'img' },
    title,
    shapes,
  )
  let drawnKey = ''
  const draw = (lines, label) => {
    const key = JSON.stringify(lines)
    title.textContent = label
    if (key === drawnKey) return
    drawnKey = key
    const all = lines.flatMap(({ values }) => values.filter((value) => value !== null)).sort((a, b) => a - b)
    const maximum = Math.max(1e-9, Math.min(all.at(-1) ?? 0, (all[Math.floor(all.length * 0.97)] || Infinity) * 1.5))
    shapes.replaceChildren(svg('path', { class: 'ground', d: `M0 ${HEIGHT - 0.5}H${WIDTH}` }), ...lines.map((line) => drawLine(line, maximum)))
  }
  return { node, draw }
}

function drawLine({ values, kind }, maximum) {
  const step = WIDTH / (values.length - 1)
  const y = (value) => (HEIGHT - 1 - Math.min(1, value / maximum) * (HEIGHT - 3)).toFixed(1)
  if (kind === 'marks')
    return svg('path', { class: kind, d: values.map((value, i) => (value > 0 ? `M${(i * step).toFixed(1)} ${HEIGHT}v-4` : '')).join('') })
  let path = ''
  let isDrawing = false
  for (const [i, value] of values.entries()) {
    if (value === null) {
      isDrawing = false
      continue
    }
    // Draws a single value between gaps as a dot.
    path += `${isDrawing ? 'L' : 'M'}${(i * step).toFixed(1)} ${y(value)}${isDrawing ? '' : 'h.6'}`
    isDrawing = true
  }
  if (kind === 'area') path += `V${HEIGHT}H0Z`
  return svg('path', { class: kind, d: path })
}
