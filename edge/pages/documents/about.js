// Panel of a document: its properties, tags and versions, the state of its reading, and what can be done with it.

import { actionButton, button } from '../parts/actions.js'
import { call } from '../parts/api.js'
import { confirmAction } from '../parts/dialog.js'
import { announce, copyButton, h, keepFocus, panel, setText } from '../parts/dom.js'
import { formatBytes, formatCount, formatMinute } from '../parts/format.js'
import { cancelButton, jobPath, progressBar } from '../parts/jobs.js'
import { chip, facts } from '../parts/table.js'
import { fileChooser } from './drop.js'
import { nameType } from './kinds.js'
import { openReadForm } from './read-form.js'
import { countOf, deleteDocuments, downloadLink, editDocument, pathOf, restore } from './records.js'
import { makeTags } from './tags.js'
import { makeVersions, uploadVersion } from './versions.js'

/**
 * Makes the panel. `extract(query, json)` reads the document, and `content` is the rest of the page, which a deletion hides.
 */
export function makeAbout(record, { extract, setTitle, content }) {
  const state = { record, rows: [] }
  const note = h('p', { class: 'label', role: 'status' })
  const bar = progressBar('Reading')
  const reading = h('span', { class: 'actions' })
  const properties = h('div', {})
  const tags = makeTags(record)
  const versions = makeVersions(record)
  const setReading = (...buttons) => keepFocus(reading, () => reading.replaceChildren(...buttons))
  const show = (changed) => {
    Object.assign(state.record, changed)
    setTitle(state.record.title)
    properties.replaceChildren(factsOf(state.record))
    tags.show(state.record.tags)
  }
  const edit = button('Edit', () => editDocument(state.record, show), { label: 'Edit the properties' })
  const newVersion = fileChooser(([file]) => uploadVersion(state.record, file), { text: 'Upload new version', kind: 'plain', multiple: false })
  const remove = actionButton('Delete', 'Deleting…', 'Delete the document', () => deleteDocuments([state.record], { hide: showDeleted, show: showRestored }), true)
  const actions = h('div', { class: 'actions' }, reading, downloadLink(record), edit, newVersion, remove)
  const whole = h('div', {}, h('div', { class: 'line' }, note, h('span', { class: 'gap' }), actions), bar.node, properties, tags.node, detailsOf(record), versions.node)
  const gone = h('div', { hidden: true })
  const node = panel('About', { class: 'panel about' }, whole, gone)

  const showRestored = () => {
    gone.hidden = true
    whole.hidden = content.hidden = false
  }
  const showDeleted = () => {
    const back = actionButton('Restore', 'Restoring…', 'Restore the document', async () => {
      await restore(record.id)
      showRestored()
      return 'Restored'
    }, true)
    const forever = actionButton('Delete forever', 'Deleting…', 'Delete forever', async () => {
      if (!(await confirmAction(`Delete ${state.record.title} forever?`, 'The file and its text are deleted immediately. Nothing can restore them.', 'Delete forever'))) return null
      await call('DELETE', `${pathOf(record.id)}?permanent=true`)
      location.assign('/documents')
      return null
    }, true)
    gone.replaceChildren(h('p', {}, 'This document is in the trash.'), h('div', { class: 'actions' }, back, forever, h('a', { href: '/documents' }, 'All documents')))
    gone.hidden = false
    whole.hidden = content.hidden = true
    back.focus()
  }
  show(record)
  return {
    node,
    load: versions.load,
    showBusy: (jobId) => {
      bar.node.hidden = false
      bar.update(null)
      note.classList.remove('bad')
      setReading(h('a', { href: jobPath(jobId) }, 'Job'), cancelButton(jobId, 'extraction'))
    },
    showProgress: (label, progress) => {
      setText(note, label)
      bar.update(progress ?? null)
    },
    showIdle: (rows, problem) => {
      bar.node.hidden = true
      const [readCount, total] = [rows.filter(({ status }) => status === 'read').length, rows.length]
      note.classList.toggle('bad', problem !== null)
      setText(note, problem ?? (total === 0 ? 'Not read yet' : `${formatCount(readCount)} of ${countOf(total, 'page')} read`))
      const isRead = total > 0
      setReading(isRead ? button('Read again', () => openReadForm(state.record, extract)) : actionButton('Read', 'Reading…', 'Read the document', () => extract()))
    },
    showError: (problem) => {
      bar.node.hidden = true
      note.classList.add('bad')
      setText(note, problem)
    },
    /** Reads the properties again, because a reading changes some. */
    reload: async () => show(await call('GET', pathOf(record.id)).catch(() => state.record)),
  }
}

const SOURCES = { upload: 'Upload', attachment: 'Attachment' }

function factsOf({ kind, media_type, byte_size, document_date, channel, source, note, received_at, updated_at, attached_to_id, protected: isProtected }) {
  const main = facts([
    ['Type', `${nameType(media_type)}, ${formatBytes(byte_size)}`],
    ['Kind', kind === 'other' ? null : kind],
    ['Date', document_date],
    ['Received', formatMinute(received_at)],
    ['Changed', updated_at === null ? null : formatMinute(updated_at)],
    ['Source', SOURCES[source] ?? source],
    ['Channel', channel],
    ['Attached to', attached_to_id === null ? null : h('a', { href: `/documents/${attached_to_id}` }, 'the message or file it came with')],
    ['Deletion', isProtected ? chip('protected', 'good') : null],
  ])
  return h('div', {}, main, note && h('p', { class: 'note' }, note))
}

function detailsOf({ media_type, sha256 }) {
  return h('details', {}, h('summary', {}, 'Technical details'), facts([['Media type', media_type], ['SHA-256', h('span', { class: 'digest' }, h('code', {}, sha256), copyButton(sha256, 'SHA-256'))]]))
}
