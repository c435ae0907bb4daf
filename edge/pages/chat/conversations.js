// The list of conversations, with a search, and buttons that rename and delete.

import { actWithUndo, button } from '../parts/actions.js'
import { call } from '../parts/api.js'
import { openForm } from '../parts/dialog.js'
import { h } from '../parts/dom.js'
import { formatCount } from '../parts/format.js'
import { list } from '../parts/list.js'
import { shortTime } from '../parts/table.js'

/**
 * Makes the list. `pane` opens conversations: `pane.select(id)`, `pane.current()`, and `pane.renamed(id, title)`.
 */
export function conversationList(pane) {
  const made = list({
    title: 'Conversations',
    path: '/api/v1/ai/conversations',
    empty: 'No conversations yet. Ask a question to begin one.',
    filters: [{ name: 'search', label: 'Search' }],
    columns: [{ name: 'Conversation', kind: 'name', show: (item) => entry(item, pane) }],
    nameOf: ({ title }) => title,
    buttons: () => [newLink(pane)],
    actions: (item, api) => [
      button('Rename', () => rename(item, pane, (title) => api.replace({ ...item, title })), { label: `Rename ${item.title}` }),
      button('Delete', () => remove(item, pane, api), { label: `Delete ${item.title}` }),
    ],
  })
  made.node.classList.add('conversations')
  const mark = () => {
    for (const link of made.node.querySelectorAll('td a')) {
      if (link.dataset.id === pane.current()) link.setAttribute('aria-current', 'page')
      else link.removeAttribute('aria-current')
    }
  }
  return { ...made, mark }
}

const newLink = (pane) =>
  h('a', { class: 'button', href: '/chat/new', onclick: (event) => follow(event, () => pane.select(null)) }, 'New chat')

/** Opens a link in this page, unless the person asks for another tab. */
function follow(event, open) {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return
  event.preventDefault()
  open()
}

function entry({ id, title, message_count, last_activity, match }, pane) {
  const count = `${formatCount(message_count)} message${message_count === 1 ? '' : 's'}`
  const found = match?.message_id ? h('span', { class: 'snippet' }, match.snippet) : null
  const link = h('a', { href: `/chat/${id}`, 'data-id': id, 'aria-current': id === pane.current() ? 'page' : null }, h('span', { class: 'title' }, title))
  link.addEventListener('click', (event) => follow(event, () => pane.select(id)))
  return h('span', { class: 'entry' }, link, found, h('span', { class: 'soft meta' }, count, ' · ', shortTime(last_activity)))
}

export const rename = ({ id, title }, pane, done) =>
  openForm('Rename conversation', {
    operation: 'PATCH /api/v1/ai/conversations/{conversation_id}',
    params: { conversation_id: id },
    fields: ['title'],
    set: { title: { isRequired: true, maxLength: 200 } },
    values: { title },
    prepare: (changed) => ({ title: changed.title ?? title }),
    done: (answer) => {
      done(answer.title)
      pane.renamed(id, answer.title)
      return 'Renamed'
    },
  })

/** Deletes a conversation, unless undone. The service cannot restore it. */
export function remove(item, pane, api) {
  const wasOpen = pane.current() === item.id
  actWithUndo(`Deleted ${item.title.slice(0, 60)}`, {
    hide: () => {
      api.remove(item)
      if (wasOpen) pane.select(null)
    },
    show: () => {
      api.reload()
      if (wasOpen) pane.select(item.id)
    },
    run: () => call('DELETE', `/api/v1/ai/conversations/${item.id}`),
  })
}
