// Questions about one document: the answer of a model, if there is one, and the passages that it is from.

import { call, completed } from './api.js'
import { announce, h, panel } from './dom.js'

const MAX_SHOWN = 400

export function makeQuestions({ id, sha256 }) {
  // Names of collections are everybody's: nobody else can have taken one with a part of the digest.
  const collection = `document-${id}-${sha256.slice(0, 16)}`
  const question = h('input', { type: 'text', name: 'question', required: true, maxlength: 4000, autocomplete: 'off' })
  const button = h('button', { type: 'submit' }, 'Ask')
  const problem = h('p', { class: 'bad', role: 'alert' })
  const answer = h('div', { class: 'answer' })
  let conversation = null

  /** The collection of this document, which follows it by itself once it is there. */
  const prepare = async () => {
    try {
      await call('GET', `/rag/collections/${collection}`)
    } catch (error) {
      if (error.status !== 404) throw error
      await completed('POST', '/rag/index', { json: { collection_name: collection, documents: { ids: [Number(id)] } } })
    }
  }
  const ask = async (message) => {
    const json = { message, rag_collection: collection, conversation_id: conversation }
    const { content, rag_sources, conversation_id } = await completed('POST', '/api/v1/ai/chat', { json })
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
    announce('Looking for an answer')
    try {
      await prepare()
      // Without a model that answers, the passages are still there.
      const found = await ask(message).catch((error) => {
        if (error.status < 500) throw error
        return search(message, error.message)
      })
      answer.replaceChildren(...partsOf(found))
      announce(found.text ?? `${found.passages.length} passages were found`)
    } catch (error) {
      problem.textContent = error.message
    } finally {
      button.disabled = false
    }
  }
  const form = h('form', { class: 'upload', onsubmit: send }, h('label', {}, 'Question about this document', question), button)
  return panel('Ask', {}, form, problem, answer)
}

function partsOf({ text, note, passages }) {
  const items = passages.map(({ content, rank, metadata: { page } }) =>
    h(
      'li',
      { value: rank },
      h('a', { href: `#page-${page}` }, `Page ${page}`),
      h('p', { class: 'soft' }, content.length > MAX_SHOWN ? `${content.slice(0, MAX_SHOWN)}…` : content),
    ),
  )
  return [
    note !== null && h('p', { class: 'soft' }, `No model answers (${note}). These passages match:`),
    text !== null && h('p', { class: 'said' }, text),
    items.length === 0 ? h('p', { class: 'soft' }, 'Nothing was found in this document.') : h('ol', {}, ...items),
  ].filter((part) => part !== false)
}
