// Dialogs: content, questions and forms over the page.

import { h } from './dom.js'
import { form } from './form.js'

let dialogCount = 0

/**
 * Opens a dialog with content. Escape and the button at the top close it. Returns the node and a promise of its return
 * value. `isWide` makes room for tables and texts.
 */
export function openDialog(title, content, { isWide = false } = {}) {
  const id = `dialog-${++dialogCount}`
  const close = h('button', { class: 'plain close', type: 'button', 'aria-label': 'Close', onclick: () => node.close('') }, '×')
  const node = h('dialog', { class: isWide ? 'wide' : '', 'aria-labelledby': id }, h('div', { class: 'head' }, h('h2', { id }, title), close), ...[content].flat())
  const closed = new Promise((resolve) => {
    node.addEventListener('close', () => {
      moveNotices()
      node.remove()
      resolve(node.returnValue)
    })
  })
  document.body.append(node)
  node.showModal()
  moveNotices()
  return { node, closed }
}

/** Moves messages and their buttons into the topmost open dialog, outside of which nothing can be seen or used. */
function moveNotices() {
  const host = [...document.querySelectorAll('dialog[open]')].at(-1) ?? document.body
  const notices = document.getElementById('notices')
  if (notices.parentElement !== host) host.append(notices)
}

/** Asks before an action that nothing can undo. Resolves to true if the person confirms. `isDanger` colours its button. */
export async function confirmAction(title, text, confirmLabel, { isDanger = true } = {}) {
  const no = h('button', { class: 'plain', value: '' }, 'Go back')
  const yes = h('button', { class: isDanger ? 'danger' : '', value: 'yes' }, confirmLabel)
  const { closed } = openDialog(title, h('form', { method: 'dialog' }, h('p', {}, text), h('div', { class: 'actions end' }, no, yes)))
  no.focus()
  return (await closed) === 'yes'
}

/**
 * Opens a form in a dialog, which closes after the form was sent. `options` are those of `form()`. Resolves to the
 * answer; null if the person closes the dialog.
 */
export async function openForm(title, options) {
  let answer = null
  const made = form({
    ...options,
    done: async (data, values) => {
      answer = data
      node.close('done')
      return options.done?.(data, values)
    },
  })
  const { node, closed } = openDialog(title, made.node, { isWide: options.isWide })
  await made.load()
  made.focus()
  await closed
  return answer
}
