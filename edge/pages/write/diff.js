// The difference of two texts by lines.

import { h } from '../parts/dom.js'
import { formatCount } from '../parts/format.js'

// Above this number of pairs of lines, the changed part is shown as removed and added.
const MAX_PAIRS = 4_000_000
// Unchanged lines around a change.
const CONTEXT = 3

/** Returns the lines of both texts in order, each as `[kind, line]`, where the kind is `same`, `removed` or `added`. */
function compareLines(before, after) {
  const [old, now] = [before.split('\n'), after.split('\n')]
  let start = 0
  while (start < old.length && start < now.length && old[start] === now[start]) start++
  let end = 0
  while (end < old.length - start && end < now.length - start && old.at(-1 - end) === now.at(-1 - end)) end++
  const middle = compareMiddle(old.slice(start, old.length - end), now.slice(start, now.length - end))
  const same = (line) => ['same', line]
  return [...old.slice(0, start).map(same), ...middle, ...old.slice(old.length - end).map(same)]
}

/** Finds the longest common subsequence of lines. */
function compareMiddle(old, now) {
  const whole = [...old.map((line) => ['removed', line]), ...now.map((line) => ['added', line])]
  if (old.length * now.length > MAX_PAIRS) return whole
  const width = now.length + 1
  const lengths = new Uint32Array((old.length + 1) * width)
  for (let i = old.length - 1; i >= 0; i--)
    for (let j = now.length - 1; j >= 0; j--)
      lengths[i * width + j] = old[i] === now[j] ? lengths[(i + 1) * width + j + 1] + 1 : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1])
  const lines = []
  let [i, j] = [0, 0]
  while (i < old.length || j < now.length) {
    if (i < old.length && j < now.length && old[i] === now[j]) {
      lines.push(['same', old[i++]])
      j++
    } else if (j === now.length || (i < old.length && lengths[(i + 1) * width + j] >= lengths[i * width + j + 1])) lines.push(['removed', old[i++]])
    else lines.push(['added', now[j++]])
  }
  return lines
}

const SIGNS = { same: ' ', removed: '−', added: '+' }
const TAGS = { same: 'span', removed: 'del', added: 'ins' }

/** Shows the difference of two texts. Unchanged lines far from a change are left out. */
export function diffView(before, after) {
  const lines = compareLines(before, after)
  const isNear = lines.map(([kind]) => kind !== 'same')
  for (const [i, [kind]] of lines.entries()) if (kind !== 'same') for (let at = Math.max(0, i - CONTEXT); at <= Math.min(lines.length - 1, i + CONTEXT); at++) isNear[at] = true
  const rows = []
  let skipped = 0
  const flush = () => {
    if (skipped > 0) rows.push(h('div', { class: 'gap' }, `${formatCount(skipped)} unchanged line${skipped === 1 ? '' : 's'}`))
    skipped = 0
  }
  for (const [i, [kind, line]] of lines.entries()) {
    if (!isNear[i]) {
      skipped++
      continue
    }
    flush()
    rows.push(h('div', { class: `row ${kind}` }, h('span', { class: 'sign', 'aria-hidden': 'true' }, SIGNS[kind]), h(TAGS[kind], {}, line)))
  }
  flush()
  if (lines.every(([kind]) => kind === 'same')) return h('p', { class: 'soft' }, 'Both versions are equal.')
  return h('div', { class: 'diff', tabindex: '0', role: 'group', 'aria-label': 'Changes by lines' }, ...rows)
}
