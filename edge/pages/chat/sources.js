// Sources of answers, and names of documents.

import { call } from '../parts/api.js'
import { h } from '../parts/dom.js'

/** Returns the address of a source; null for a file that is not in the service. */
function addressOf({ document_id, page }) {
  if (document_id === undefined) return null
  return `/documents/${document_id}${page ? `#page-${page}` : ''}`
}

function nameOf({ file_name, source, document_id, page, start_line, end_line }) {
  const name = document_id === undefined ? source : file_name
  if (page !== null && page !== undefined) return `${name}, page ${page}`
  return start_line ? `${name}, lines ${start_line} to ${end_line}` : name
}

/** Makes the numbered list of sources; null without any. */
export function sourceList(sources) {
  if (!Array.isArray(sources) || sources.length === 0) return null
  const items = sources.map(({ rank, content, metadata }) => {
    const href = addressOf(metadata)
    const name = nameOf(metadata)
    const title = href === null ? h('strong', {}, name) : h('a', { href }, name)
    return h('li', { value: rank }, title, h('p', { class: 'soft excerpt' }, content))
  })
  const summary = `${sources.length} source${sources.length === 1 ? '' : 's'}`
  return h('details', { class: 'sources' }, h('summary', {}, summary), h('ol', {}, ...items))
}

/** Returns a function that makes the link of a citation, such as `[1]`; null if no source has the number. */
export const citationOf = (sources) => (number) => {
  const source = (Array.isArray(sources) ? sources : []).find(({ rank }) => rank === number)
  const href = source === undefined ? null : addressOf(source.metadata)
  if (source === undefined) return null
  const name = nameOf(source.metadata)
  return href === null ? h('abbr', { title: name }, `[${number}]`) : h('a', { href, title: name, class: 'cite' }, `[${number}]`)
}

const titles = new Map()

/** Keeps the title of a document that is known already. */
export const rememberTitle = (id, title) => titles.set(id, Promise.resolve(title))

/** Makes a chip that links to a document. Its title loads if it is not known. */
export function documentChip(id) {
  const link = h('a', { class: 'chip', href: `/documents/${id}` }, 'Document')
  if (!titles.has(id)) titles.set(id, call('GET', `/api/v1/documents/${id}`).then(({ title }) => title, () => null))
  titles.get(id).then((title) => (link.textContent = title ?? 'Deleted document'))
  return link
}
