// Panel with the log lines of a job, in order.

import { h, panel } from '../parts/dom.js'
import { formatTimeMs } from '../parts/format.js'
import { scrollBox, table } from '../parts/table.js'

const TONES = { warn: 'warn', error: 'bad', fatal: 'bad' }

export function makeLog() {
  const {
    node: lines,
    body,
    row,
  } = table('Log', [
    ['Time', 'number'],
    ['Attempt', 'number'],
    ['Level', ''],
    ['Message', 'wide'],
  ])
  const node = panel('Log', { hidden: true }, scrollBox('Log', lines), h('p', { class: 'soft' }, 'The log of the worker has all lines.'))
  let shown = ''
  const update = ({ log }) => {
    node.hidden = log === null || log.length === 0
    const now = JSON.stringify(log)
    if (node.hidden || shown === now) return
    shown = now
    body.replaceChildren(
      ...log.map(({ at, attempt, level, message, data }) =>
        row(formatTimeMs(at), String(attempt ?? ''), h('span', { class: `chip ${TONES[level] ?? ''}` }, level), h('div', {}, message, detailsOf(data))),
      ),
    )
  }
  return { node, update }
}

/** Makes the data of a line, below its message. */
function detailsOf(data) {
  const pairs = Object.entries(data)
  return pairs.length === 0
    ? ''
    : h(
        'div',
        { class: 'data' },
        ...pairs.map(([name, value]) => h('code', { class: 'soft' }, `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)),
      )
}
