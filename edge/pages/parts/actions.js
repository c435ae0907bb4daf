// Buttons that act, menus, and notices that can undo an action.

import { ApiError } from './api.js'
import { announce, h, isBusy, setBusy, setText } from './dom.js'

/**
 * Makes a button that calls `run` and announces the text that `run` returns; null announces nothing. After a failure
 * the button can be pressed again. After a success it stays busy until redrawn, unless `repeatable` is true.
 */
export function actionButton(text, busy, label, run, repeatable = false) {
  const button = h('button', { class: 'plain', type: 'button', 'aria-label': label }, text)
  const ready = () => {
    button.removeAttribute('aria-disabled')
    setText(button, text)
  }
  // Ignores key repeats, because the focus may have moved to the opposite button.
  button.addEventListener('keydown', (event) => event.repeat && event.preventDefault())
  button.addEventListener('click', async () => {
    if (isBusy(button)) return
    setBusy(button, busy)
    try {
      const done = await run()
      if (done) announce(done)
      if (repeatable) ready()
    } catch (error) {
      ready()
      announce(`${label}: ${error.message}`, { isBad: true })
    }
  })
  return button
}

/**
 * Makes a button that runs a function of the page, such as one that opens a dialog. It announces a call that fails, and
 * ignores clicks until the function is done, because a second one would open a second dialog.
 */
export function button(text, run, { label, kind = 'plain' } = {}) {
  let isRunning = false
  const onclick = async (event) => {
    if (isRunning) return
    isRunning = true
    try {
      await run(event)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      announce(`${label ?? text}: ${error.message}`, { isBad: true })
    } finally {
      isRunning = false
    }
  }
  return h('button', { class: kind, type: 'button', 'aria-label': label, onclick }, text)
}

/** Makes a menu that opens below its name, until Escape or a click elsewhere. */
export function menu(name, ...content) {
  const summary = h('summary', {}, name)
  const node = h('details', { class: 'menu' }, summary, h('div', { class: 'sheet' }, ...content))
  const closeOutside = ({ target }) => {
    // A dialog that its button has opened returns the focus to that button.
    if (!node.contains(target) && target.closest('dialog') === null) node.open = false
  }
  node.addEventListener('keydown', ({ key }) => {
    if (key !== 'Escape' || !node.open) return
    node.open = false
    summary.focus()
  })
  node.addEventListener('toggle', () => {
    if (node.open) document.addEventListener('click', closeOutside)
    else document.removeEventListener('click', closeOutside)
  })
  return node
}

/** Makes a wrapper for a button that depends on a state. A new state replaces the button with the result of `make`. */
export function buttonByState(make) {
  const node = h('span', {})
  let shown
  const update = (state) => {
    if (state === shown) return
    shown = state
    node.replaceChildren(make(state))
  }
  return { node, update }
}

/** Milliseconds until an action that can be undone is carried out. */
const UNDO_MS = 7000

/**
 * Carries out an action after `UNDO_MS`, unless the person presses Undo. `hide` and `show` change the page meanwhile.
 * Leaving or hiding the page carries the action out immediately. Use this only where the service itself cannot undo.
 */
export function actWithUndo(text, { run, hide = () => {}, show = () => {} }) {
  let timer = null
  const end = () => {
    clearTimeout(timer)
    removeEventListener('pagehide', act)
    notice.remove()
  }
  const act = async () => {
    end()
    try {
      await run()
    } catch (error) {
      show()
      announce(`${text}: ${error.message}`, { isBad: true })
    }
  }
  const undo = () => {
    end()
    show()
    announce('Undone')
  }
  const notice = showNotice(text, undo)
  hide()
  addEventListener('pagehide', act)
  timer = setTimeout(act, UNDO_MS)
}

/** Announces that an action is done, with a button that calls `undo`, which reverts it at the service. */
export function offerUndo(text, undo) {
  const close = () => {
    clearTimeout(timer)
    notice.remove()
  }
  const notice = showNotice(text, async () => {
    close()
    try {
      await undo()
      announce('Undone')
    } catch (error) {
      announce(`Undo: ${error.message}`, { isBad: true })
    }
  })
  const timer = setTimeout(close, UNDO_MS)
}

function showNotice(text, onUndo) {
  const notice = h('div', { class: 'toast', role: 'status' }, h('span', {}, text), h('button', { class: 'plain', type: 'button', 'data-key': 'z', onclick: onUndo }, 'Undo'))
  document.getElementById('toasts').append(notice)
  return notice
}
