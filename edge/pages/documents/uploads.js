// Panel of uploads: each file with its progress, then the reading of its text.

import { button } from '../parts/actions.js'
import { announce, focusNode, h, panel, setText } from '../parts/dom.js'
import { formatBytes, formatCount } from '../parts/format.js'
import { progressBar } from '../parts/jobs.js'
import { adviceFor } from '../parts/states.js'
import { chip } from '../parts/table.js'
import { readDocument } from './readings.js'
import { countOf } from './records.js'
import { sendFile } from './send-file.js'

const MAX_AT_ONCE = 3

/**
 * Makes the panel, which is hidden until `add(files)` is called. `onStored(record, isNew)` runs after each upload, and
 * `onFrame(id, frame)` with each progress of a reading.
 */
export function makeUploads({ onStored, onFrame }) {
  const rows = []
  const waiting = []
  let active = 0
  const items = h('ul', { class: 'uploads' })
  const summary = h('p', { class: 'soft', role: 'status' })
  const again = button('Try failed again', () => rows.filter(({ state }) => state === 'failed').forEach(enqueue))
  const clear = button('Clear', () => {
    for (const row of rows.filter(isOver)) remove(row)
    update()
  })
  const node = panel('Uploads', { tools: [again, clear], hidden: true }, summary, items)

  const isOver = ({ state }) => state === 'done' || state === 'failed'
  const remove = (row) => {
    row.node.remove()
    rows.splice(rows.indexOf(row), 1)
    const at = waiting.indexOf(row)
    if (at >= 0) waiting.splice(at, 1)
  }
  const update = () => {
    const count = (state) => rows.filter((row) => row.state === state).length
    const failed = count('failed')
    node.hidden = rows.length === 0
    again.hidden = failed < 2
    clear.hidden = !rows.some(isOver)
    const parts = [`${formatCount(count('done'))} of ${countOf(rows.length, 'file')} done`, failed > 0 && `${formatCount(failed)} failed`]
    setText(summary, parts.filter(Boolean).join(' · '))
  }
  const enqueue = (row) => {
    row.setState('waiting')
    waiting.push(row)
    update()
    work()
  }
  const work = async () => {
    if (active >= MAX_AT_ONCE) return
    const row = waiting.shift()
    if (row === undefined) return
    active++
    await send(row)
    active--
    update()
    work()
  }
  const send = async (row) => {
    row.setState('sending')
    try {
      row.record ??= await store(row)
      // Reading goes on while the next file is sent.
      read(row)
    } catch (error) {
      if (!row.signal.aborted) row.fail(error)
    }
  }
  const store = async (row) => {
    const { record, isNew } = await sendFile(row.file, { onProgress: row.showSent, signal: row.signal })
    row.isNew = isNew
    onStored(record, isNew)
    return record
  }
  const read = async (row) => {
    const { record } = row
    if (!row.isNew && record.page_count !== null) return finish(row, 'Already here', record)
    row.setState('reading')
    try {
      const frame = await readDocument(record.id, (one) => {
        row.showRead(one)
        onFrame(record.id, one)
      })
      if (frame.status === 'done') finish(row, row.isNew ? 'Read' : 'Already here', record)
      else row.fail(new Error(frame.status === 'cancelled' ? 'Reading was cancelled' : (frame.error?.detail ?? 'Reading failed')))
    } catch (error) {
      row.fail(error)
    }
    update()
  }
  const finish = (row, text, record) => {
    row.finish(text, record)
    update()
    if (!rows.every(isOver)) return
    const failed = rows.filter(({ state }) => state === 'failed').length
    announce(failed === 0 ? `${countOf(rows.length, 'file')} uploaded and read` : `${countOf(failed, 'file')} failed`, { isBad: failed > 0 })
  }
  const add = (files) => {
    for (const file of files) {
      const row = makeRow(file, {
        tryAgain: () => enqueue(row),
        cancel: () => {
          remove(row)
          update()
          focusNode(node, { preventScroll: true })
        },
      })
      rows.push(row)
      items.append(row.node)
      enqueue(row)
    }
    announce(`Uploading ${countOf(files.length, 'file')}`)
  }
  return { node, add, isBusy: () => rows.some(({ state }) => state === 'waiting' || state === 'sending') }
}

const TEXTS = { waiting: 'Waiting', sending: 'Uploading', reading: 'Reading' }

function makeRow(file, { tryAgain, cancel }) {
  const controller = new AbortController()
  const bar = progressBar(`Upload of ${file.name}`)
  const state = h('span', { class: 'soft state' })
  const problem = h('p', { class: 'bad', hidden: true })
  const name = h('span', { class: 'name' }, h('strong', {}, file.name))
  const buttons = h('span', { class: 'actions' })
  const again = button('Try again', tryAgain, { label: `Try ${file.name} again` })
  const stop = button('Cancel', () => {
    controller.abort()
    cancel()
  }, { label: `Cancel the upload of ${file.name}` })
  const node = h('li', {}, h('div', { class: 'line' }, name, h('span', { class: 'soft' }, formatBytes(file.size)), h('span', { class: 'gap' }), state, buttons), bar.node, problem)
  const showEnd = (kind, text) => {
    bar.node.hidden = true
    state.replaceChildren(chip(text, kind))
  }
  return {
    file,
    node,
    record: null,
    signal: controller.signal,
    setState(value) {
      this.state = value
      problem.hidden = true
      bar.node.hidden = false
      bar.update(value === 'waiting' ? { current: 0, total: 1 } : null)
      setText(state, TEXTS[value])
      buttons.replaceChildren(...(value === 'reading' ? [] : [stop]))
    },
    showSent: (share) => {
      bar.update({ current: share, total: 1 })
      setText(state, share === 1 ? 'Storing' : `Uploading ${Math.floor(share * 100)} %`)
    },
    showRead: ({ label, progress, status }) => {
      bar.update(progress?.total ? progress : null)
      setText(state, status === 'running' ? label || 'Reading' : 'Waits to be read')
    },
    fail(error) {
      this.state = 'failed'
      showEnd('bad', 'Failed')
      problem.hidden = false
      setText(problem, `${error.message}. ${error.status === undefined ? '' : adviceFor(error)}`.trim())
      buttons.replaceChildren(again, stop)
      setText(stop, 'Dismiss')
    },
    finish(text, { id, title }) {
      this.state = 'done'
      showEnd('good', text)
      name.replaceChildren(h('a', { href: `/documents/${id}` }, h('strong', {}, title)))
      buttons.replaceChildren()
    },
  }
}
