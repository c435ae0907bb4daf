// Elements from data. Text is always set as text, so nothing that a job says can become markup.

const SVG = 'http://www.w3.org/2000/svg'

/** An element: attributes by name, `on…` listeners, and children that are nodes or text. */
export function h(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children)
}

export function svg(tag, props = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children)
}

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value)
    else node.setAttribute(name, value === true ? '' : value)
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== false))
  return node
}

/** Sets a text if it has changed: an unchanged one keeps its selection. */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text
}

/** Has a button say what it is doing. It is not disabled, which would cost it the focus: its listener asks `isBusy`. */
export function setBusy(button, text) {
  button.setAttribute('aria-disabled', 'true')
  say(button, text)
}

export const isBusy = (button) => button.hasAttribute('aria-disabled')

/** Gives a node the focus, even one that can't be reached by the keyboard. */
export function giveFocus(node, options) {
  // What had no tabindex and needs none gets 0, and everything else -1.
  node.tabIndex = node.tabIndex
  node.focus(options)
}

/**
 * Draws what is in a node, and keeps the focus. What has been moved has it still; what is gone or hidden leaves it to a
 * button or link beside it, else to the row in its place, which can't be pressed by mistake, else to this part of the page.
 */
export function keepFocus(parent, draw) {
  const focused = document.activeElement
  if (focused === parent || !parent.contains(focused)) return draw()
  const around = []
  for (let node = focused; node !== parent; node = node.parentElement) around.push(node)
  const place = [...parent.children].indexOf(around.at(-1))
  draw()
  if (focused === document.activeElement && isShown(focused)) return
  const left = around.filter(isShown)
  const [to] = left.flatMap((node) => (node === focused ? node : [...node.querySelectorAll('button, a[href]')].filter(isShown)))
  const row = left.at(-1) ?? parent.children[Math.min(place, parent.children.length - 1)]
  giveFocus(to ?? row ?? parent.closest('section'), { preventScroll: true })
}

const isShown = (node) => node.checkVisibility()

const rows = new WeakMap()

/**
 * Brings the children of a node in line with a list. Each item has one row `{node, update}` by its key, which stays as
 * long as the item does: with its selection and its images. The focus stays in any case.
 */
export function keyed(parent, items, keyOf, make) {
  keepFocus(parent, () => bringInLine(parent, items, keyOf, make))
}

function bringInLine(parent, items, keyOf, make) {
  const known = rows.get(parent) ?? new Map()
  rows.set(parent, known)
  const keys = new Set(items.map(keyOf))
  for (const [key, { node }] of known) {
    if (keys.has(key)) continue
    node.remove()
    known.delete(key)
  }
  let at = parent.firstElementChild
  for (const item of items) {
    const key = keyOf(item)
    const row = known.get(key) ?? make(item)
    known.set(key, row)
    row.update(item)
    if (row.node === at) at = at.nextElementSibling
    else parent.insertBefore(row.node, at)
  }
}

let named = 0

/** A part of the page with a heading. */
export function panel(title, props, ...children) {
  const id = `h${++named}`
  const heading = h('h2', { id }, title)
  return h('section', { class: 'panel', 'aria-labelledby': id, ...props }, heading, ...children)
}

/** A table that becomes a list of cards on narrow screens; its roles are explicit, because that layout removes them. */
export function table(caption, columns) {
  const body = h('tbody', { role: 'rowgroup' })
  const head = h(
    'thead',
    { role: 'rowgroup' },
    h('tr', { role: 'row' }, ...columns.map(([name, kind]) => h('th', { role: 'columnheader', scope: 'col', class: kind }, name))),
  )
  const node = h('table', { role: 'table' }, h('caption', { class: 'hidden' }, caption), head, body)
  const row = (...contents) =>
    h(
      'tr',
      { role: 'row' },
      ...contents.map((content, i) => h('td', { role: 'cell', class: columns[i][1], 'data-label': columns[i][0] }, content)),
    )
  return { node, body, row }
}

/** Figures in a row: `entries` are their names and notes; `set` shows the text of one. */
export function tiles(entries) {
  const figures = new Map(entries.map(([name]) => [name, h('dd', {}, '–')]))
  const node = h(
    'dl',
    { class: 'tiles' },
    ...entries.map(([name, note]) => h('div', {}, h('dt', {}, name, h('small', {}, note)), figures.get(name))),
  )
  return { node, set: (name, text) => say(figures.get(name), text) }
}

/** Says instead of a page that it is not for this account, and why. */
export function forAdmins(view, why) {
  view.replaceChildren(
    h(
      'div',
      { class: 'panel narrow' },
      h('h1', {}, 'For admins'),
      h('p', {}, why, ' You can still see your own documents.'),
      h('a', { class: 'button', href: '/monitor/documents' }, 'Documents'),
    ),
  )
}

/** Announces what has happened, to screen readers too. */
export function announce(text) {
  const said = document.getElementById('said')
  said.textContent = ''
  // An unchanged text would not be read out again.
  requestAnimationFrame(() => {
    said.textContent = text
  })
}
