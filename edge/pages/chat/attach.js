// Documents that a question refers to: chosen from those of the account, or uploaded.

import { actionButton } from '../parts/actions.js'
import { call, withQuery } from '../parts/api.js'
import { openDialog } from '../parts/dialog.js'
import { announce, h, setText } from '../parts/dom.js'
import { replaceAddress } from '../parts/filters.js'
import { formatCount } from '../parts/format.js'
import { callAndWait } from '../parts/jobs.js'
import { list } from '../parts/list.js'
import { shortTime } from '../parts/table.js'
import { isOfQuestion } from '../documents/collections.js'
import { rememberTitle } from './sources.js'

// Limit of the route.
const MAX_DOCUMENTS = 20

/** Makes the chips of attached documents. `onChange` runs after each change. */
export function attachments(onChange) {
  const attached = new Map()
  const node = h('div', { class: 'chips attached', role: 'group', 'aria-label': 'Attached documents' })
  const draw = () => {
    node.replaceChildren(...[...attached].map(([key, entry]) => chipOf(key, entry)))
    node.hidden = attached.size === 0
    onChange()
  }
  const chipOf = (key, { title, state }) => {
    const drop = h('button', { type: 'button', class: 'drop', 'aria-label': `Remove ${title}`, onclick: () => set(key, null) }, '×')
    return h('span', { class: `chip ${state === 'failed' ? 'bad' : ''}` }, h('span', {}, title), state === 'reading' ? ' (reading…)' : null, drop)
  }
  const set = (key, entry) => {
    if (entry === null) attached.delete(key)
    else attached.set(key, entry)
    draw()
  }
  const isFull = () => {
    if (attached.size < MAX_DOCUMENTS) return false
    announce(`A question can have ${MAX_DOCUMENTS} documents.`, { isBad: true })
    return true
  }
  const add = async (document) => {
    if (attached.has(document.id) || isFull()) return
    rememberTitle(document.id, document.title)
    await read(document.id, document)
  }
  /** Extracts the text of a document that has none, because a model gets the text. */
  const read = async (key, { id, title, page_count }) => {
    const isRead = page_count !== null && page_count !== undefined
    set(key, { id, title, state: isRead ? 'ready' : 'reading' })
    if (isRead) return announce(`Attached ${title}`)
    try {
      await callAndWait('POST', `/api/v1/documents/${id}/extract?background=true`)
      if (attached.has(key)) set(key, { id, title, state: 'ready' })
      announce(`Attached ${title}`)
    } catch (error) {
      set(key, null)
      announce(`${title}: ${error.message}`, { isBad: true })
    }
  }
  const upload = async (file) => {
    if (isFull()) return
    const key = Symbol(file.name)
    set(key, { title: file.name, state: 'reading' })
    try {
      const body = new FormData()
      body.set('file', file)
      const document = await call('POST', '/api/v1/documents', { body })
      rememberTitle(document.id, document.title)
      if (attached.has(key)) await read(key, document)
    } catch (error) {
      set(key, null)
      announce(`${file.name}: ${error.message}`, { isBad: true })
    }
  }
  node.hidden = true
  return {
    node,
    add,
    upload: (files) => [...files].forEach(upload),
    ids: () => [...attached.values()].map(({ id }) => id),
    isReading: () => [...attached.values()].some(({ state }) => state === 'reading'),
    clear: () => {
      attached.clear()
      draw()
    },
    choose: () => chooseDocuments({ add, upload, has: (id) => attached.has(id) }),
  }
}

/** Opens the dialog in which a person chooses documents or uploads files. */
async function chooseDocuments({ add, upload, has }) {
  const input = h('input', { type: 'file', multiple: true })
  input.addEventListener('change', () => {
    for (const file of input.files) upload(file)
    dialog.node.close()
  })
  const documents = list({
    title: 'Your documents',
    name: 'attach',
    path: '/api/v1/documents',
    pageSize: 20,
    empty: 'You have no documents. Upload one above.',
    filters: [{ name: 'search', label: 'Search' }],
    columns: [
      { name: 'Title', kind: 'name', show: ({ title }) => title },
      { name: 'Pages', kind: 'number', show: ({ page_count }) => (page_count === null ? 'not read yet' : formatCount(page_count)) },
      { name: 'Received', kind: 'number', show: ({ received_at }) => shortTime(received_at) },
    ],
    actions: (document) => attachButton(document, add, has),
  })
  const dialog = openDialog('Attach documents', [h('label', {}, 'Upload files', input), documents.node], { isWide: true })
  dialog.node.classList.add('attach')
  documents.load()
  await dialog.closed
  replaceAddress({ 'attach.search': null })
}

function attachButton(document, add, has) {
  if (has(document.id)) return h('span', { class: 'soft' }, 'Attached')
  const made = actionButton('Attach', 'Attaching…', `Attach ${document.title}`, async () => {
    add(document)
    requestAnimationFrame(() => setText(made, 'Attached'))
  })
  return made
}

/** Returns the collections that the account may search; none if it may not. Names that questions made are omitted, apart from `given`. */
export const readCollections = async (given) => {
  const names = await call('GET', withQuery('/rag/collections', { limit: 1000 })).catch(() => [])
  return names.filter((name) => name === given || !isOfQuestion(name))
}
