// Panel with the events of a job, newest first.

import { h, panel } from '../parts/dom.js'
import { formatTimeMs } from '../parts/format.js'
import { TONES } from '../parts/jobs.js'
import { scrollBox, table } from '../parts/table.js'

const MAX_ROWS = 500

export function makeEvents() {
  const { node, body, row } = table('Events', [
    ['No.', 'number'],
    ['Time', 'number'],
    ['Event', ''],
    ['Details', 'wide'],
  ])
  const empty = h('p', { class: 'soft' }, 'No events yet.')
  const content = scrollBox('Events', node)
  content.hidden = true
  let lastSeq = 0
  let lastStatus = null
  const add = (seq, kind, at, data) => {
    if (seq <= lastSeq) return
    lastSeq = seq
    const [text, tone, details] = kind === 'status' ? statusCells(data) : [kind, '', JSON.stringify(data)]
    if (text === null) return
    empty.hidden = true
    content.hidden = false
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
  /** Adds the events that are not yet shown. */
  const fill = (events) => {
    for (const { seq, kind, at, data } of events) add(seq, kind, at, data)
  }
  return { node: panel('Events', {}, content, empty), fill }
}

const progressOf = ({ current, total }) => [current ?? null, total ?? null]
