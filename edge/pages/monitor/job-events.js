// Panel with the events of a job, newest first.

import { h, panel, table } from './dom.js'
import { formatTimeMs } from './format.js'
import { TONES } from './tables.js'

const MAX_ROWS = 500

export function makeEvents() {
  const { node, body, row } = table('Events', [
    ['No.', 'number'],
    ['Time', 'number'],
    ['Event', ''],
    ['Details', 'wide'],
  ])
  const empty = h('p', { class: 'soft' }, 'No events yet.')
  let lastSeq = 0
  let lastStatus = null
  const add = (seq, kind, at, data) => {
    if (seq <= lastSeq) return
    lastSeq = seq
    const [text, tone, details] = kind === 'status' ? statusCells(data) : [kind, '', JSON.stringify(data)]
    if (text === null) return
    empty.hidden = true
    body.prepend(row(String(seq), formatTimeMs(at), h('span', { class: `chip ${tone}` }, text), details))
    if (body.childElementCount > MAX_ROWS) body.lastElementChild.remove()
  }
  /**
   * Returns the cells of a status event. A repeated status reports progress. If the progress is unchanged, the text is
   * null.
   */
  const statusCells = (data) => {
    const before = lastStatus
    lastStatus = data
    // Omit the label, because the row of the last progress already shows it.
    if (before?.status !== data.status) return [data.status, TONES[data.status] ?? '', '']
    const isChanged = data.label !== before.label || JSON.stringify(progressOf(data)) !== JSON.stringify(progressOf(before))
    return isChanged ? ['progress', '', data.label ?? ''] : [null]
  }
  /** Replaces the rows with the stored events, unless the stream has already delivered later ones. */
  const fill = (events) => {
    if ((events.at(-1)?.seq ?? 0) < lastSeq) return
    lastSeq = 0
    lastStatus = null
    body.replaceChildren()
    for (const { seq, kind, at, data } of events) add(seq, kind, at, data)
  }
  return { node: panel('Events', {}, node, empty), add, fill }
}

// Stream frames nest the progress, whereas stored events have flat fields.
const progressOf = ({ progress, current, total }) => [progress?.current ?? current ?? null, progress?.total ?? total ?? null]
