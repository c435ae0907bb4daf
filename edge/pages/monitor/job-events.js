// The events of a job, newest first.

import { h, panel, table } from './dom.js'
import { instant } from './format.js'
import { TONES } from './tables.js'

const MAX_ROWS = 500

export function makeEvents() {
  const { node, body, row } = table('Events', [
    ['No.', 'number'],
    ['Time', 'number'],
    ['Event', ''],
    ['Details', 'wide'],
  ])
  const empty = h('p', { class: 'soft' }, 'Nothing has happened yet.')
  let last = 0
  let state = null
  const add = (seq, kind, at, data) => {
    if (seq <= last) return
    last = seq
    const [text, tone, what] = kind === 'status' ? stateOf(data) : [kind, '', JSON.stringify(data)]
    if (text === null) return
    empty.hidden = true
    body.prepend(row(String(seq), instant(at), h('span', { class: `chip ${tone}` }, text), what))
    if (body.childElementCount > MAX_ROWS) body.lastElementChild.remove()
  }
  /** A state is told once: what follows it is progress, or nothing new. */
  const stateOf = (data) => {
    const before = state
    state = data
    // The label is that of the last progress, which has a row of its own.
    if (before?.status !== data.status) return [data.status, TONES[data.status] ?? '', '']
    const isNews = data.label !== before.label || JSON.stringify(progressOf(data)) !== JSON.stringify(progressOf(before))
    return isNews ? ['progress', '', data.label ?? ''] : [null]
  }
  /** All of them, as they are stored. */
  const fill = (events) => {
    if ((events.at(-1)?.seq ?? 0) < last) return
    last = 0
    state = null
    body.replaceChildren()
    for (const { seq, kind, at, data } of events) add(seq, kind, at, data)
  }
  return { node: panel('Events', {}, node, empty), add, fill }
}

// Frames and stored events have it in different places.
const progressOf = ({ progress, current, total }) => [progress?.current ?? current ?? null, progress?.total ?? total ?? null]
