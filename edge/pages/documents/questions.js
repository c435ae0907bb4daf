// Panel for questions about one document. Shows the source passages and, if a model is available, its answer.

import { call, callAndWait } from './api.js'
import { announce, h, panel } from './dom.js'

const MAX_SHOWN = 400

export function makeQuestions({ id, sha256 }) {
  // Collections share one namespace. The digest makes this name unguessable, so no other account can take it.
  const collection = `document-${id}-${sha256.slice(0, 16)}`
  const question = h('input', { type: 'text', name: 'question', required: true, maxlength: 4000, autocomplete: 'off' })
  const button = h('button', { type: 'submit' }, 'Ask')
  const problem = h('p', { class: 'bad', role: 'alert' })
  const answer = h('div', { class: 'answer' })
  let conversation = null

  /** Creates the collection of this document if it is missing. The service then keeps the collection up to date. */
  const ensureCollection = async () => {
    try {
      await call('GET', `/rag/collections/${collection}`)
    } catch (error) {
      if (error.status !== 404) throw error
      await callAndWait('POST', '/rag/index', { json: { collection_name: collection, documents: { ids: [Number(id)] } } })
    }
  }
  const ask = async (message) => {
    const json = { message, rag_collection: collection, conversation_id: conversation }
    const { content, rag_sources, conversation_id } = await callAndWait('POST', '/api/v1/ai/chat', { json })
    conversation = conversation_id
    return { text: content, note: null, passages: rag_sources }
  }
  const search = async (query, note) => {
    const json = { query, collection_name: collection }
    const { results } = await call('POST', '/rag/search', { json })
    return { text: null, note, passages: results }
  }
  const send = async (event) => {
    event.preventDefault()
    const message = question.value
    button.disabled = true
    problem.textContent = ''
    announce('Searching for an answer')
    try {
      await ensureCollection()
      // If no model answers, search the passages instead.
      const result = await ask(message).catch((error) => {
        if (error.status < 500) throw error
        return search(message, error.message)
      })
      answer.replaceChildren(...answerNodes(result))
      announce(result.text ?? `${result.passages.length} passages found`)
    } catch (error) {
      problem.textContent = error.message
    } finally {
      button.disabled = false
    }
  }
  const form = h('form', { class: 'upload', onsubmit: send }, h('label', {}, 'Question about this document', question), button)
  return panel('Ask', {}, form, problem, answer)
}

function answerNodes({ text, note, passages }) {
  const items = passages.map(({ content, rank, metadata: { page } }) =>
    h(
      'li',
      { value: rank },
      h('a', { href: `#page-${page}` }, `Page ${page}`),
      h('p', { class: 'soft' }, content.length > MAX_SHOWN ? `${content.slice(0, MAX_SHOWN)}…` : content),
    ),
  )
  return [
    note !== null && h('p', { class: 'soft' }, `No model answered (${note}). Matching passages:`),
    text !== null && h('p', { class: 'said' }, text),
    items.length === 0 ? h('p', { class: 'soft' }, 'Nothing was found in this document.') : h('ol', {}, ...items),
  ].filter((part) => part !== false)
}
