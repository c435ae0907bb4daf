// Page of the account's documents: search, filters, tags, uploads and actions on several documents.

import { actionButton, button } from '../parts/actions.js'
import { call } from '../parts/api.js'
import { openDialog } from '../parts/dialog.js'
import { announce, h, setText } from '../parts/dom.js'
import { formatBytes, formatCount } from '../parts/format.js'
import { list } from '../parts/list.js'
import { shortcut } from '../parts/shortcuts.js'
import { chip, shortTime } from '../parts/table.js'
import { fileChooser, takeDrops } from './drop.js'
import { ACCEPTED, nameType } from './kinds.js'
import { mark, readWords } from './marks.js'
import { makeQuestions } from './questions.js'
import { followDocuments, reportConnection } from './readings.js'
import { countOf, deleteDocuments, downloadLink, editDocument, pathOf, readTags, runBulk, tagDocuments } from './records.js'
import { makeUploads } from './uploads.js'

const ORDERS = [
  ['', 'Newest or best match first'],
  ['received_at', 'Oldest first'],
  ['title', 'Title, A to Z'],
  ['-title', 'Title, Z to A'],
  ['-document_date', 'Latest date first'],
  ['document_date', 'Earliest date first'],
  ['-byte_size', 'Largest first'],
  ['byte_size', 'Smallest first'],
  ['-page_count', 'Most pages first'],
  ['page_count', 'Fewest pages first'],
]

// Emails bring further documents, which their reading stores.
const MAY_HAVE_ATTACHMENTS = /^message\/|outlook|mbox|tnef/

const MAX_TAGS = 8

export const page = ({ showConnection }) => {
  reportConnection((state) => showConnection(state))
  const readings = makeReadings(() => documents)
  const uploads = makeUploads({
    onStored: (record, isNew) => {
      const isShown = documents.items().some(({ id }) => id === record.id)
      if (isShown) documents.replace(record)
      else if (isNew) documents.insert(record)
    },
    onFrame: readings.show,
  })
  const documents = makeList({ readings, uploads })
  addEventListener('beforeunload', (event) => uploads.isBusy() && event.preventDefault())
  shortcut('u', 'Upload files', () => documents.node.querySelector('input[type=file]').click())
  return [takeDrops(uploads.add), uploads, documents]
}

function makeList({ readings, uploads }) {
  // Kinds are any words, so suggest those in use.
  let suggestKinds
  const kinds = new Promise((resolve) => (suggestKinds = resolve))
  const remove = (items, api) => deleteDocuments(items, { hide: (gone) => gone.forEach(api.remove), show: () => api.reload() })
  return list({
    title: 'Documents',
    path: '/api/v1/documents?hits=true',
    note: `Drop files anywhere on this page: ${ACCEPTED}.`,
    empty: 'You have no documents. Drop files here, or choose them with “Upload files”.',
    nameOf: ({ title }) => title,
    orders: ORDERS,
    filters: [
      { name: 'search', label: 'Search titles and text' },
      { name: 'tag', label: 'Tag', isMany: true, options: readTags },
      { name: 'kind', label: 'Kind', suggestions: () => kinds },
      { name: 'from', label: 'From', type: 'date', isMore: true },
      { name: 'to', label: 'To', type: 'date', isMore: true },
      { name: 'include_superseded', label: 'Older versions', isMore: true, options: [['true', 'Shown']] },
    ],
    columns: [
      { name: 'Title', kind: 'name wide', isFixed: true, show: (item, api) => titleCell(item, api) },
      { name: 'Kind', show: ({ kind }) => (kind === 'other' ? null : kind) },
      { name: 'Type', kind: 'type', show: ({ media_type }) => nameType(media_type) },
      { name: 'Size', kind: 'number', sort: 'byte_size', show: ({ byte_size }) => formatBytes(byte_size) },
      { name: 'Pages', kind: 'number', sort: 'page_count', show: readings.cell },
      { name: 'Date', kind: 'number', sort: 'document_date', isHidden: true, show: ({ document_date }) => document_date },
      { name: 'Received', kind: 'number', sort: 'received_at', show: ({ received_at }) => shortTime(received_at) },
    ],
    buttons: () => [fileChooser(uploads.add)],
    actions: (item, api) => [
      downloadLink(item),
      button('Edit', () => editDocument(item, (changed) => api.replace({ ...item, ...changed })), { label: `Edit ${item.title}` }),
      actionButton('Delete', 'Deleting…', `Delete ${item.title}`, () => remove([item], api)),
    ],
    bulk: [
      ['Ask', ask],
      ['Read', (items) => readings.start(items)],
      ['Add tag', (items, api) => tagDocuments('tag', items, () => api.reload())],
      ['Remove tag', (items, api) => tagDocuments('untag', items, () => api.reload())],
      ['Delete', remove],
    ],
    onRead: ({ items }) => suggestKinds([...new Set(items.map(({ kind }) => kind))].toSorted()),
  })
}

/** Opens the dialog that asks about documents. */
async function ask(items) {
  const questions = makeQuestions(items)
  const { closed } = openDialog(`Ask ${countOf(items.length)}`, questions.node, { isWide: true })
  addEventListener('pagehide', questions.end)
  await closed
  removeEventListener('pagehide', questions.end)
  questions.end()
}

function titleCell({ id, title, tags, hits = [], protected: isProtected, superseded_by_id, attached_to_id }, api) {
  const { search = '' } = api.filter()
  const words = readWords(search)
  const query = search === '' ? '' : `?search=${encodeURIComponent(search)}`
  const flags = [superseded_by_id !== null && chip('older version', 'warn'), attached_to_id !== null && chip('attachment'), isProtected && chip('protected')].filter(Boolean)
  const labels = tags.slice(0, MAX_TAGS).map((tag) => h('button', { class: 'chip', type: 'button', 'aria-label': `Show documents with the tag ${tag}`, onclick: () => api.filterBy('tag', tag) }, tag))
  const snippets = hits.map(({ page_number, snippet }) =>
    h('li', {}, h('a', { class: 'figure', href: `/documents/${id}${query}#page-${page_number}`, 'aria-label': `Page ${page_number} of ${title}` }, `Page ${page_number}`), h('span', {}, '… ', ...mark(snippet, words), ' …')),
  )
  return h(
    'div',
    { class: 'found' },
    h('a', { class: 'job', href: `/documents/${id}${query}` }, ...mark(title, words)),
    flags.length + labels.length > 0 && h('span', { class: 'chips' }, ...flags, ...labels, tags.length > MAX_TAGS && chip(`${tags.length - MAX_TAGS} more`)),
    snippets.length > 0 && h('ul', { class: 'hits' }, ...snippets),
  )
}

/** Shows the progress of readings in the cells of a list. */
function makeReadings(list) {
  const cells = new Map()
  const frames = new Map()
  const show = (id, frame) => {
    frames.set(id, frame)
    const node = cells.get(id)
    if (node !== undefined) setText(node, textOf(frame))
    if (['done', 'failed', 'cancelled'].includes(frame.status)) end(id)
  }
  const end = async (id) => {
    frames.delete(id)
    const item = list().items().find((one) => one.id === id)
    const record = await call('GET', pathOf(id)).catch(() => null)
    if (record === null || item === undefined) return
    list().replace({ ...item, ...record })
    if (MAY_HAVE_ATTACHMENTS.test(record.media_type)) list().reload()
  }
  return {
    show,
    cell: ({ id, page_count }) => {
      const frame = frames.get(id)
      const node = h('span', { class: page_count === null ? 'soft' : '' }, frame !== undefined ? textOf(frame) : page_count === null ? 'not read' : formatCount(page_count))
      cells.set(id, node)
      return node
    },
    start: async (items) => {
      const ids = await runBulk('extract', items)
      if (ids.length === 0) return
      announce(`Reading ${countOf(ids.length)}`)
      await followDocuments(ids, show, (id, frame) => frame === null && end(id))
    },
  }
}

const textOf = ({ progress }) => (progress?.total ? `${formatCount(progress.current ?? 0)} of ${formatCount(progress.total)}` : 'reading…')
