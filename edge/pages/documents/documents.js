// Page with the documents of the signed-in account, and an upload form.

import { call } from './api.js'
import { announce, h, panel, table } from './dom.js'
import { formatBytes, formatCount, formatDateTime } from './format.js'

export async function show(view) {
  document.title = 'Documents · Millrace'
  const list = makeList()
  view.replaceChildren(h('h1', { class: 'hidden' }, 'Documents'), makeUpload(), list.node)
  list.showDocuments(await call('GET', '/api/v1/documents?page_size=100'))
}

function makeUpload() {
  const file = h('input', { type: 'file', name: 'file', required: true })
  const button = h('button', { type: 'submit' }, 'Upload and read')
  const problem = h('p', { class: 'bad', role: 'alert' })
  const send = async (event) => {
    event.preventDefault()
    button.disabled = true
    problem.textContent = ''
    announce('Uploading')
    try {
      const body = new FormData()
      body.set('file', file.files[0])
      const { id } = await call('POST', '/api/v1/documents', { body })
      await call('POST', `/api/v1/documents/${id}/extract?background=true`)
      location.assign(`/monitor/documents/${id}`)
    } catch (error) {
      problem.textContent = error.message
      button.disabled = false
    }
  }
  const form = h('form', { class: 'upload', onsubmit: send }, h('label', {}, 'PDF, image, Office or text file', file), button)
  return panel('Add a document', {}, form, problem)
}

function makeList() {
  const { node, body, row } = table('Documents', [
    ['Title', 'wide'],
    ['Type', ''],
    ['Size', 'number'],
    ['Pages', 'number'],
    ['Received', 'number'],
  ])
  const note = h('p', { class: 'soft' })
  const showDocuments = ({ items, total }) => {
    body.replaceChildren(
      ...items.map(({ id, title, media_type, byte_size, page_count, received_at }) =>
        row(
          h('a', { href: `/monitor/documents/${id}` }, title),
          media_type,
          formatBytes(byte_size),
          page_count === null ? 'not read' : formatCount(page_count),
          formatDateTime(received_at),
        ),
      ),
    )
    note.textContent = total === 0 ? 'No documents yet.' : total > items.length ? `and ${formatCount(total - items.length)} more` : ''
  }
  return { node: panel('Documents', {}, node, note), showDocuments }
}
