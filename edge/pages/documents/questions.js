// Questions about one document or several. Shows the source passages and, if a model is available, its answer.

import { actionButton } from '../parts/actions.js'
import { call } from '../parts/api.js'
import { announce, h, isBusy, setBusy, setText } from '../parts/dom.js'
import { callAndWait } from '../parts/jobs.js'
import { collectionOf, deleteCollection, ensureCollection } from './collections.js'
import { showMarkdown } from './markdown-view.js'
import { readWords } from './marks.js'
import { readDocument } from './readings.js'
import { countOf } from './records.js'

const MAX_SHOWN = 400

/**
 * Makes the form and its answers for documents. Unread ones must be read first. `onRead()` reads the one document of a
 * page that shows the progress itself.
 */
export function makeQuestions(documents, { onRead } = {}) {
  const state = { unread: documents.filter(({ page_count }) => page_count === null), conversation: null, indexing: null, isContinued: false }
  const label = documents.length === 1 ? 'Question about this document' : `Question about ${countOf(documents.length)}`
  const question = h('input', { type: 'text', name: 'question', required: true, maxlength: 4000, autocomplete: 'off' })
  const submit = h('button', { type: 'submit' }, 'Ask')
  const problem = h('p', { class: 'bad', role: 'alert' })
  const answer = h('div', { class: 'answer' })
  const form = h('form', { class: 'ask', onsubmit: (event) => send(event) }, h('label', {}, label, question), submit)
  const notice = h('div', { class: 'unread' })
  const node = h('div', { class: 'questions' }, notice, form, problem, answer)

  const send = async (event) => {
    event.preventDefault()
    if (isBusy(submit)) return
    setBusy(submit, 'Asking…')
    setText(problem, '')
    announce('Searching for an answer')
    try {
      const result = await findAnswer(documents, question.value, state)
      answer.replaceChildren(...answerNodes(documents, result, question.value, () => (state.isContinued = true)))
      announce(result.text ?? `${result.passages.length} passages found`)
    } catch (error) {
      setText(problem, `${error.message}. Try again.`)
    } finally {
      submit.removeAttribute('aria-disabled')
      setText(submit, 'Ask')
    }
  }
  const readAll = async () => {
    const frames = await Promise.all(state.unread.map(({ id }) => readDocument(id)))
    const failed = frames.filter(({ status }) => status !== 'done')
    state.unread = state.unread.filter((_, i) => frames[i].status !== 'done')
    update()
    if (failed.length > 0) throw new Error(failed[0].error?.detail ?? 'Reading was cancelled')
    question.focus()
    return 'You can ask now'
  }
  const update = () => {
    const isAll = state.unread.length === documents.length
    form.hidden = isAll
    notice.hidden = state.unread.length === 0
    if (notice.hidden) return notice.replaceChildren()
    const text = documents.length === 1 ? 'This document must be read before you can ask about it.' : isAll ? 'These documents must be read before you can ask about them.' : `${countOf(state.unread.length)} must be read first. Answers come from the others.`
    const label = documents.length === 1 ? 'Read it now' : 'Read them now'
    const read = actionButton(label, 'Reading…', label, onRead ?? readAll, true)
    notice.replaceChildren(h('p', {}, text), h('div', { class: 'actions' }, read))
  }
  update()
  return {
    node,
    /** Sets whether the one document has been read. */
    setRead: (isRead) => {
      state.unread = isRead ? [] : documents
      update()
    },
    /**
     * Deletes the collection of several documents, because it counts in the quota and this selection may never come again. A
     * conversation that goes on in the chat needs it.
     */
    end: () => {
      if (documents.length === 1 || state.isContinued) return
      state.indexing?.then(() => deleteCollection(collectionOf(documents))).catch(() => {})
    },
  }
}

/** Asks a model about documents. If none answers, searches the passages. */
async function findAnswer(documents, message, state) {
  const collection = collectionOf(documents)
  await (state.indexing = ensureCollection(collection, documents))
  try {
    const json = { message, rag_collection: collection, conversation_id: state.conversation }
    const { content, rag_sources, conversation_id } = await callAndWait('POST', '/api/v1/ai/chat', { json })
    state.conversation = conversation_id
    return { text: content, note: null, passages: rag_sources, conversation: conversation_id }
  } catch (error) {
    if (error.status < 500) throw error
    const { results } = await call('POST', '/rag/search', { json: { query: message, collection_name: collection } })
    return { text: null, note: error.message, passages: results, conversation: null }
  }
}

function answerNodes(documents, { text, note, passages, conversation }, question, onContinue) {
  // Short words, such as articles, are everywhere.
  const words = readWords(question).filter((word) => word.length > 3 || !/^[a-z]+$/.test(word))
  const isOne = documents.length === 1
  const items = passages.map(({ content, rank, metadata: { page, title, document_id } }) => {
    const shown = content.length > MAX_SHOWN ? `${content.slice(0, MAX_SHOWN)}…` : content
    const href = isOne ? `#page-${page}` : `/documents/${document_id}?search=${encodeURIComponent(question)}#page-${page}`
    return h('li', { value: rank }, h('a', { href, target: isOne ? null : '_blank' }, isOne ? `Page ${page}` : `${title}, page ${page}`), h('div', { class: 'soft passage' }, showMarkdown(shown, words)))
  })
  return [
    note !== null && h('p', { class: 'soft' }, `No model answered: ${note.replace(/\.$/, '')}. These passages match the question:`),
    text !== null && h('p', { class: 'said' }, text),
    items.length === 0 ? h('p', { class: 'soft' }, isOne ? 'Nothing was found in this document.' : 'Nothing was found in these documents.') : h('ol', {}, ...items),
    conversation !== null && h('p', {}, h('a', { href: `/chat/${conversation}?collection=${collectionOf(documents)}`, onclick: onContinue }, 'Continue in the chat')),
  ].filter(Boolean)
}
