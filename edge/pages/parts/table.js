// Tables that become lists of cards on narrow screens, and rows of figures and facts.

import { h, setText } from './dom.js'
import { formatDateTime, now } from './format.js'

/**
 * Makes a table. Its roles are explicit, because the card layout drops the implicit ones. `columns` lists the name and
 * CSS class of each column.
 */
export function table(caption, columns) {
  const body = h('tbody', { role: 'rowgroup' })
  const head = h('thead', { role: 'rowgroup' }, h('tr', { role: 'row' }, ...columns.map(([name, kind]) => h('th', { role: 'columnheader', scope: 'col', class: kind }, name))))
  const node = h('table', { role: 'table' }, h('caption', { class: 'hidden' }, caption), head, body)
  const row = (...contents) => h('tr', { role: 'row' }, ...contents.map((content, i) => cell(columns[i], content)))
  return { node, body, row }
}

/** Makes a box in which a wide table scrolls sideways. The keyboard reaches it only while there is something to scroll. */
export function scrollBox(label, node) {
  const box = h('div', { class: 'scroll', role: 'group', 'aria-label': label }, node)
  const update = () => (box.scrollWidth > box.clientWidth ? box.setAttribute('tabindex', '0') : box.removeAttribute('tabindex'))
  const observer = new ResizeObserver(update)
  observer.observe(box)
  observer.observe(node)
  return box
}

/** Makes the cell of a column `[name, kind]`. Cards omit a cell without content. */
export function cell([name, kind], content) {
  const isAbsent = content === null || content === undefined || content === ''
  return h('td', { role: 'cell', class: isAbsent ? `${kind} absent` : kind, 'data-label': name }, isAbsent ? '–' : content)
}

/** Makes a row of figures. `entries` lists the name and note of each figure, and `set` changes the text of a figure. */
export function tiles(entries) {
  const figures = new Map(entries.map(([name]) => [name, h('dd', {}, '–')]))
  const node = h(
    'dl',
    { class: 'tiles' },
    ...entries.map(([name, note]) => h('div', {}, h('dt', {}, name, h('small', {}, note)), figures.get(name))),
  )
  return { node, set: (name, text) => setText(figures.get(name), text) }
}

/** Makes a list of named facts from `[name, content]` pairs. Omits pairs whose content is null. */
export function facts(pairs) {
  const known = pairs.filter((pair) => pair && pair[1] !== null && pair[1] !== undefined)
  return h('dl', { class: 'facts' }, ...known.map(([name, content]) => h('div', {}, h('dt', {}, name), h('dd', {}, content))))
}

/** Makes a short label with the tone `good`, `live`, `warn`, `bad` or ''. */
export const chip = (text, tone = '') => h('span', { class: `chip ${tone}` }, text)

/** Makes a short time: the time of day if it is today, or else the date. Its title has both. */
export function shortTime(iso) {
  const time = new Date(iso)
  const isToday = time.toDateString() === new Date(now()).toDateString()
  const text = isToday ? time.toLocaleTimeString('en-GB', { timeStyle: 'short' }) : time.toLocaleDateString('en-GB', { dateStyle: 'medium' })
  return h('time', { datetime: iso, title: formatDateTime(iso) }, text)
}

/** Makes a text of which a row shows two lines; null if it is empty. */
export const clamped = (text) => (text ? h('span', { class: 'clamp', title: text.length > 80 ? text : null }, text) : null)
