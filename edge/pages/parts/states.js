// Sections and their states: loading, shown, empty and failed.

import { ApiError } from './api.js'
import { h, panel } from './dom.js'

/** Returns what a person can do about a failed call, as a sentence. */
export function adviceFor(error) {
  if (!(error instanceof ApiError)) return 'Reload the page. If this happens again, report it.'
  if (error.status === 0) return 'Check the network connection. This page loads again when it is back.'
  if (error.status === 403) return 'Ask an admin or an owner of the organization for access.'
  if (error.status === 404) return 'It may have been deleted. Go back to the list.'
  if (error.status === 429) return 'Wait a moment, then try again.'
  if (error.status >= 500) return 'Try again. If this happens again, report the request ID.'
  return 'Check the input, then try again.'
}

/** Makes a notice about a failed call with a button that tries again. */
export function failure(error, tryAgain) {
  return h(
    'div',
    { class: 'failure', role: 'alert' },
    h('p', { class: 'bad' }, error.message),
    h('p', { class: 'soft' }, adviceFor(error), error.requestId ? h('span', {}, ' Request ID: ', h('code', {}, error.requestId)) : null),
    h('button', { class: 'plain', type: 'button', onclick: tryAgain }, 'Try again'),
  )
}

/** Makes a placeholder with the height of `rows` rows, so that loaded rows do not move the page. */
export function skeleton(rows = 3) {
  return h('div', { class: 'skeleton', 'aria-hidden': 'true' }, ...Array.from({ length: rows }, () => h('span', {})))
}

/** Makes the notice of an empty section. `more` may be buttons or links that change this. */
export const emptyNotice = (text, ...more) => h('div', { class: 'empty' }, h('p', {}, text), ...more)

/**
 * Makes a section that reads data and shows it. `read` returns the data, and `show(data)` returns nodes or null to show
 * the text `empty`. `actions` are buttons next to the heading. The section loads again when the network is back.
 */
export function section({ title, note, read, show, empty = 'Nothing here yet.', rows = 3, actions = [], className }) {
  const body = h('div', { class: 'body' }, skeleton(rows))
  const node = panel(title, { class: `panel ${className ?? ''}`, tools: actions }, note ? h('p', { class: 'soft' }, note) : null, body)
  let shown
  const load = async () => {
    node.setAttribute('aria-busy', 'true')
    try {
      shown = await read()
      const content = show(shown)
      body.replaceChildren(...[content ?? emptyNotice(empty)].flat().filter(Boolean))
    } catch (error) {
      body.replaceChildren(failure(error, load))
      if (error.status === 0) addEventListener('online', load, { once: true })
    } finally {
      node.removeAttribute('aria-busy')
    }
  }
  return { node, load, body, data: () => shown }
}

/** Makes a notice in place of a page. `title` names the state, `text` says what to do. */
export const notice = (title, text, ...more) => h('section', { class: 'panel narrow' }, h('h1', {}, title), h('p', {}, text), ...more)
