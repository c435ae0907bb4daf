// The form that asks a question.

import { button } from '../parts/actions.js'
import { call } from '../parts/api.js'
import { announce, h, setText } from '../parts/dom.js'
import { replaceAddress } from '../parts/filters.js'
import { isOfQuestion } from '../documents/collections.js'
import { attachments, readCollections } from './attach.js'

const MAX_CHARACTERS = 100_000

/**
 * Makes the form. `onSend(question)` gets the fields of the request, and `onStop` runs when the person stops the answer. The
 * agent and the collection are in the address, so that a reload keeps them.
 */
export function composer({ onSend, onStop }) {
  const documents = attachments(() => update())
  const input = h('textarea', { name: 'message', rows: 2, 'aria-label': 'Question', placeholder: 'Ask a question', maxlength: MAX_CHARACTERS })
  const agent = choice('Agent', 'agent', readAgents)
  const collection = choice('Search in', 'collection', async (given) => [['', 'No collection'], ...(await readCollections(given)).map((name) => [name, isOfQuestion(name) ? 'The documents asked about' : name])])
  const action = h('button', { type: 'submit' }, 'Send')
  const hint = h('span', { class: 'soft hint' }, 'Enter sends, Shift+Enter begins a line')
  const attach = button('Attach', documents.choose, { label: 'Attach documents' })
  let isWriting = false

  const update = () => setText(action, isWriting ? 'Stop' : 'Send')
  const send = () => {
    const message = input.value
    if (isWriting || message.trim() === '') return
    if (documents.isReading()) return announce('Wait until the documents are read.', { isBad: true })
    const ids = documents.ids()
    onSend({ message, ...settings(), ...(ids.length > 0 ? { document_ids: ids } : {}) })
    input.value = ''
    documents.clear()
  }
  const settings = () => ({
    ...(agent.value() === '' ? {} : { agent_slug: agent.value() }),
    ...(collection.value() === '' ? {} : { rag_collection: collection.value() }),
  })
  const submit = (event) => {
    event.preventDefault()
    if (isWriting) onStop()
    else send()
    input.focus()
  }
  const node = h(
    'form',
    { class: 'composer', 'aria-label': 'Ask', onsubmit: submit },
    documents.node,
    input,
    h('div', { class: 'controls' }, attach, agent.node, collection.node, hint, action),
  )
  input.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
    event.preventDefault()
    send()
  })
  takeFiles(node, documents)
  return {
    node,
    settings,
    focus: () => input.focus(),
    setWriting: (given) => {
      isWriting = given
      action.classList.toggle('plain', given)
      update()
    },
  }
}

/** Uploads files that are dropped on the form. */
function takeFiles(node, documents) {
  node.addEventListener('dragover', (event) => {
    if (!event.dataTransfer.types.includes('Files')) return
    event.preventDefault()
    node.classList.add('over')
  })
  node.addEventListener('dragleave', () => node.classList.remove('over'))
  node.addEventListener('drop', (event) => {
    if (event.dataTransfer.files.length === 0) return
    event.preventDefault()
    node.classList.remove('over')
    documents.upload(event.dataTransfer.files)
  })
}

/** Makes a select whose value is in the address. It is hidden while there is nothing to choose. */
function choice(label, name, read) {
  const given = new URLSearchParams(location.search).get(name) ?? ''
  const select = h('select', { onchange: () => replaceAddress({ [name]: select.value }) })
  const node = h('label', { class: 'inline', hidden: true }, label, select)
  read(given).then((pairs) => {
    select.replaceChildren(...pairs.map(([value, text]) => h('option', { value }, text)))
    if (pairs.some(([value]) => value === given)) select.value = given
    node.hidden = pairs.length < 2
  }, () => {})
  return { node, value: () => select.value }
}

async function readAgents() {
  const agents = (await call('GET', '/api/v1/ai/agents')).filter(({ is_active }) => is_active)
  // The service answers with this agent by default.
  const first = agents.filter(({ slug }) => slug === 'assistant')
  return [...first, ...agents.filter((agent) => !first.includes(agent))].map(({ slug, name, model_id }) => [slug, model_id === null ? name : `${name} · ${model_id}`])
}
