// Tags of a document: chips to filter by, with buttons that remove them, and a form that adds one.

import { offerUndo } from '../parts/actions.js'
import { call } from '../parts/api.js'
import { announce, h, keepNamedFocus } from '../parts/dom.js'
import { pathOf, readTags } from './records.js'

/** Makes the tags of a document. `show(tags)` sets them. */
export function makeTags({ id }) {
  const path = `${pathOf(id)}/tags`
  const chips = h('ul', { class: 'chips tags', 'aria-label': 'Tags' })
  const known = h('datalist', { id: 'known-tags' })
  const input = h('input', { name: 'label', maxlength: 64, required: true, autocomplete: 'off', list: 'known-tags', placeholder: 'Add a tag', 'aria-label': 'Add a tag' })
  const fill = async () => known.replaceChildren(...(await readTags().catch(() => [])).map(([value]) => h('option', { value })))
  input.addEventListener('focus', fill, { once: true })
  const change = async (method, label) => {
    const changed = method === 'POST' ? await call('POST', path, { json: { label } }) : await call('DELETE', `${path}/${encodeURIComponent(label)}`)
    show(changed.tags)
  }
  const add = async (event) => {
    event.preventDefault()
    const label = input.value.trim()
    if (label === '') return
    try {
      await change('POST', label)
      input.value = ''
      announce(`Added the tag ${label}`)
    } catch (error) {
      announce(`Add a tag: ${error.message}`, { isBad: true })
    }
  }
  const remove = async (label) => {
    try {
      await change('DELETE', label)
      input.focus()
      offerUndo(`Removed the tag ${label}`, () => change('POST', label))
    } catch (error) {
      announce(`Remove the tag: ${error.message}`, { isBad: true })
    }
  }
  const chipOf = (label) =>
    h('li', { class: 'chip' }, h('a', { href: `/documents?tag=${encodeURIComponent(label)}`, title: `Documents with the tag ${label}` }, label), h('button', { type: 'button', 'aria-label': `Remove the tag ${label}`, onclick: () => remove(label) }, '×'))
  const show = (labels) => {
    chips.hidden = labels.length === 0
    keepNamedFocus(chips, () => chips.replaceChildren(...labels.map(chipOf)))
  }
  const form = h('form', { class: 'add-tag', onsubmit: add }, input, known, h('button', { class: 'plain', type: 'submit' }, 'Add'))
  return { node: h('div', { class: 'line tagging' }, chips, form), show }
}
