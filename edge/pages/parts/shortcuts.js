// Keyboard shortcuts, and the sheet that lists them.

import { h } from './dom.js'
import { openDialog } from './dialog.js'

const known = []
let pending = ''
let timer = null

/**
 * Adds a shortcut, such as `n` or `g h`. It runs outside of inputs and dialogs. `text` is its line on the sheet.
 */
export function shortcut(keys, text, run) {
  known.push({ keys, text, run })
}

/** Returns true if a key belongs to what a person is typing. */
const isTyping = ({ target }) => target.closest?.('input, textarea, select, [contenteditable]') !== null && !['checkbox', 'radio', 'button'].includes(target.type)

addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || isTyping(event)) return
  if (document.querySelector('dialog[open]') !== null) return
  clearTimeout(timer)
  const pressed = pending === '' ? event.key : `${pending} ${event.key}`
  const found = known.findLast(({ keys }) => keys === pressed) ?? known.findLast(({ keys }) => keys === event.key)
  pending = found === undefined && known.some(({ keys }) => keys.startsWith(`${event.key} `)) ? event.key : ''
  timer = setTimeout(() => (pending = ''), 1500)
  if (found === undefined) return
  event.preventDefault()
  found.run()
})

shortcut('?', 'Show this sheet', () => {
  const lines = known.map(({ keys, text }) => h('div', {}, h('dt', {}, ...keys.split(' ').flatMap((key, i) => (i === 0 ? [h('kbd', {}, key)] : [' ', h('kbd', {}, key)]))), h('dd', {}, text)))
  openDialog('Keyboard shortcuts', h('dl', { class: 'shortcuts' }, ...lines))
})
shortcut('/', 'Go to the search or the first filter', () => document.querySelector('main input[type=search], main .filters :is(input, select), main input')?.focus())
shortcut('z', 'Undo the last action', () => [...document.querySelectorAll('[data-key=z]')].at(-1)?.click())
