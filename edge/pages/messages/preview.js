// Live preview of a message. The service renders it, so it shows exactly what would be sent.

import { call } from '../parts/api.js'
import { h } from '../parts/dom.js'
import { showHtml } from './letter.js'

const WAIT_MS = 300

/** Makes a preview. `update({ name, variables, contents })` renders a template, or the unsaved `contents` of one. */
export function makePreview() {
  const box = h('div', { class: 'shown' }, h('p', { class: 'soft' }, 'The preview appears here.'))
  const node = h('section', { class: 'preview', 'aria-label': 'Preview' }, h('h3', {}, 'Preview'), box)
  let timer = null
  let reading = null
  const render = async ({ name, ...json }) => {
    const own = (reading = Symbol(name))
    try {
      const message = await call('POST', `/api/v1/comms/templates/${encodeURIComponent(name)}/preview`, { json })
      if (own === reading) box.replaceChildren(...showMessage(message))
    } catch (error) {
      if (own === reading) box.replaceChildren(h('p', { class: 'soft' }, 'This cannot be sent yet:'), h('ul', {}, ...problemsOf(error).map((text) => h('li', {}, text))))
    }
  }
  const update = (given) => {
    clearTimeout(timer)
    timer = setTimeout(render, WAIT_MS, given)
  }
  return { node, update }
}

/** Returns sample values of variables without a default. */
export const samplesOf = (variables) => Object.fromEntries(variables.filter((variable) => variable.default === undefined).map(({ name }) => [name, `[${name.replaceAll('_', ' ')}]`]))

function problemsOf({ errors, message }) {
  if (errors === undefined || errors.length === 0) return [message]
  return errors.map(({ loc, msg }) => {
    const path = loc.filter((part) => !['body', 'contents', 'variables'].includes(part))
    return path.length === 0 ? msg : `${path.join(' ')} ${msg}`
  })
}

/** Returns the nodes of a rendered message. */
function showMessage({ subject, text, html, segments }) {
  return [
    subject !== null && h('p', { class: 'subject' }, h('span', { class: 'soft' }, 'Subject '), h('strong', {}, subject)),
    html !== null && h('div', {}, h('h4', {}, 'HTML'), showHtml(html)),
    text !== null && h('div', {}, html === null ? null : h('h4', {}, 'Text'), h('div', { class: 'letter plain' }, text)),
    segments !== null && h('p', { class: 'soft' }, segments === 1 ? 'Sent as one part' : `Sent as ${segments} parts, each of which is charged`),
  ].filter(Boolean)
}
