// A message of a conversation, with its versions, sources, calls of tools and buttons.

import { actionButton, button } from '../parts/actions.js'
import { copyText, h } from '../parts/dom.js'
import { formatCount, formatDateTime, formatDollars } from '../parts/format.js'
import { markdownView } from '../parts/markdown.js'
import { citationOf, documentChip, sourceList } from './sources.js'

const ENDS = {
  length: 'The answer reached the token limit and ends early.',
  content_filter: 'A filter of the provider ended the answer early.',
}
const STATES = { failed: 'The answer failed before its end.', stopped: 'Stopped.' }
const NAMES = { user: 'You', assistant: 'Answer', tool: 'Result of a tool' }

/** Makes the row of a message for `reconcile`. `actions` has `edit`, `regenerate`, `branch` and `show`. */
export function messageRow(message, actions) {
  const node = h('li', { class: `message ${message.role}` })
  let drawn = null
  const update = (given) => {
    const text = JSON.stringify(given)
    if (text === drawn) return
    drawn = text
    node.replaceChildren(...contentOf(given, actions, node))
  }
  update(message)
  return { node, update }
}

function contentOf(message, actions, node) {
  const { role, content, reasoning, tool_calls: calls, tool_results: results, document_ids: documents, rag_sources: sources } = message
  const body = role === 'assistant' ? markdownView(content, { cite: citationOf(sources) }).node : h('div', { class: 'words' }, content)
  const chips = documents.length === 0 ? null : h('p', { class: 'chips', role: 'group', 'aria-label': 'Documents' }, ...documents.map(documentChip))
  const note = STATES[message.status] ?? ENDS[message.finish_reason]
  return [
    h('h3', { class: 'hidden' }, NAMES[role]),
    reasoning ? folded('Reasoning', markdownView(reasoning, { base: 4 }).node) : null,
    content === '' ? null : body,
    ...(calls ?? []).map(callView),
    ...(results ?? []).map((result) => folded('Result of a tool', h('pre', { tabindex: '0' }, pretty(result.content)))),
    chips,
    sourceList(sources),
    note ? h('p', { class: message.status === 'failed' ? 'bad' : 'soft' }, note) : null,
    footOf(message, actions, node),
  ].filter(Boolean)
}

const folded = (title, content) => h('details', { class: 'fold' }, h('summary', {}, title), content)

/** Shows a call of a tool, folded. */
export const callView = ({ name, arguments: given }) => folded(`Call of the tool ${name}`, h('pre', { tabindex: '0' }, pretty(given)))

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

function footOf(message, actions, node) {
  const { role, content, timestamp, usage, model } = message
  if (role === 'tool') return null
  // A question without versions is not stored yet.
  if (message.versions.length === 0) return h('div', { class: 'foot' })
  const start = content.replace(/[\s#*`|-]+/g, ' ').trim().slice(0, 40)
  const isAnswer = role === 'assistant'
  const cost = usage ? `${formatCount(usage.input_tokens + usage.output_tokens)} tokens${usage.cost === null ? '' : ` · ${formatDollars(usage.cost)}`}` : null
  const facts = [isAnswer ? model : null, isAnswer ? cost : null].filter(Boolean).join(' · ')
  return h(
    'div',
    { class: 'foot' },
    versionSwitch(message, actions),
    h('span', { class: 'buttons' },
      content === '' ? null : button('Copy', () => copyText(content, 'message'), { label: `Copy ${isAnswer ? 'answer' : 'question'}: ${start}` }),
      isAnswer ? actionButton('Try again', 'Asking…', `Try again: ${start}`, () => actions.regenerate(message)) : null,
      isAnswer ? actionButton('Branch', 'Copying…', `Branch into a new conversation: ${start}`, () => actions.branch(message)) : null,
      isAnswer ? null : button('Edit', () => node.append(editor(message, actions, node)), { label: `Edit question: ${start}` }),
    ),
    facts === '' ? null : h('span', { class: 'soft facts-line', title: formatDateTime(timestamp) }, facts),
  )
}

/** Makes the switch between the versions of a message; null if there is one. */
function versionSwitch(message, actions) {
  const { id, versions } = message
  if (versions.length < 2) return null
  const at = versions.indexOf(id)
  const step = (text, label, by) => {
    const isEnd = versions[at + by] === undefined
    const made = actionButton(text, text, label, () => actions.show(message, by), true)
    if (isEnd) made.setAttribute('aria-disabled', 'true')
    return made
  }
  return h('span', { class: 'versions', role: 'group', 'aria-label': 'Versions' }, step('‹', 'Previous version', -1), h('span', {}, `${at + 1} of ${versions.length}`), step('›', 'Next version', 1))
}

/** Makes the form that replaces a question. */
function editor(message, actions, node) {
  const input = h('textarea', { 'aria-label': 'Question', maxlength: 100000, required: true })
  input.value = message.content
  const close = () => {
    form.remove()
    node.classList.remove('editing')
    node.querySelector('.buttons button:last-child')?.focus()
  }
  const submit = (event) => {
    event.preventDefault()
    if (input.value.trim() === '') return
    node.classList.remove('editing')
    actions.edit(message, input.value)
  }
  const form = h('form', { class: 'edit', onsubmit: submit }, input, h('div', { class: 'actions end' }, button('Cancel', close), h('button', { type: 'submit' }, 'Ask')))
  input.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') close()
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) submit(event)
  })
  node.classList.add('editing')
  requestAnimationFrame(() => {
    input.focus()
    input.setSelectionRange(input.value.length, input.value.length)
  })
  return form
}
