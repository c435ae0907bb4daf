// Panel with the log lines of a job, in order.

import { h, panel, table } from './dom.js'
import { formatTimeMs } from './format.js'

const TONES = { warn: 'warn', error: 'bad', fatal: 'bad' }

export function makeLog() {
  const { node: lines, body, row } = table('Log', [
    ['Time', 'number'],
    ['Attempt', 'number'],
    ['Level', ''],
    ['Message', 'text'],
    ['Details', 'wide'],
  ])
  const node = panel('Log', { hidden: true }, lines, h('p', { class: 'soft' }, 'The log of the worker has all lines.'))
  let shown = ''
  const update = ({ log }) => {
    node.hidden = log === null || log.length === 0
    const now = JSON.stringify(log)
    if (node.hidden || shown === now) return
    shown = now
    body.replaceChildren(...log.map(({ at, attempt, level, message, data }) => row(formatTimeMs(at), String(attempt ?? ''), h('span', { class: `chip ${TONES[level] ?? ''}` }, level), message, detailsOf(data))))
  }
  return { node, update }
}

const detailsOf = (data) => {
  const text = JSON.stringify(data)
  return text === '{}' ? '' : h('code', {}, text)
}
