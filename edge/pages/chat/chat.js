// Page of conversations: their list next to the open one. Narrow screens show one at a time.

import { button } from '../parts/actions.js'
import { h } from '../parts/dom.js'
import { shortcut } from '../parts/shortcuts.js'
import { conversationPane } from './conversation.js'
import { conversationList, remove, rename } from './conversations.js'

const TITLE = 'Chat'

export function page({ setTitle }) {
  const state = { id: null, title: TITLE }
  const bar = h('div', { class: 'bar' })
  const pane = {
    bar,
    current: () => state.id,
    select: (id) => open(id, true),
    renamed: (id, title) => id === state.id && changed({ id, title }),
    changed: (conversation) => changed(conversation),
    begun: (id) => {
      state.id = id
      history.replaceState(null, '', `/chat/${id}${location.search}`)
      node.classList.add('open')
      conversations.reload()
    },
    branched: (copy) => {
      conversations.insert(copy)
      open(copy.id, true)
    },
  }
  const changed = ({ id, title, message_count, updated_at }) => {
    if (state.id !== id) return
    const known = conversations.items().find((item) => item.id === id)
    const isSame = known === undefined || (known.title === title && (message_count ?? known.message_count) === known.message_count)
    if (!isSame) conversations.replace({ ...known, title, message_count: message_count ?? known.message_count, last_activity: updated_at ?? known.last_activity })
    Object.assign(state, { title })
    setTitle(title)
    drawBar()
  }
  const drawBar = () => {
    const back = h('a', { class: 'back', href: '/chat' }, '‹ Conversations')
    const item = { id: state.id, title: state.title }
    const tools = state.id === null ? [] : [
      button('Rename', () => rename(item, pane, () => {}), { label: 'Rename this conversation' }),
      button('Delete', () => remove(item, pane, conversations), { label: 'Delete this conversation' }),
    ]
    bar.replaceChildren(back, h('h2', { class: 'hidden' }, 'Open conversation'), h('p', { class: 'name' }, state.title === TITLE ? 'New conversation' : state.title), h('div', { class: 'actions' }, ...tools))
  }
  const open = (id, isNew) => {
    if (isNew && id !== null && id === state.id) return node.classList.add('open')
    Object.assign(state, { id, title: TITLE })
    if (isNew) history.pushState(null, '', `/chat/${id ?? 'new'}${location.search}`)
    node.classList.toggle('open', id !== null || location.pathname.endsWith('/new'))
    setTitle(TITLE)
    drawBar()
    conversations.mark()
    if (isNew && id === null) requestAnimationFrame(() => conversation.focus())
    return conversation.show(id)
  }
  const conversations = conversationList(pane)
  const conversation = conversationPane(pane)
  const node = h('div', { class: 'chat' }, conversations.node, conversation.node)
  const fromAddress = () => {
    const [, , id] = location.pathname.split('/')
    return id === undefined || id === '' || id === 'new' ? null : id
  }
  addEventListener('popstate', () => open(fromAddress(), false))
  shortcut('n', 'New chat', () => open(null, true))
  return [{ node, load: () => Promise.all([conversations.load(), open(fromAddress(), false)]) }]
}
