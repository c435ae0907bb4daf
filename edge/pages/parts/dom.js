// Builds elements from data. Strings become text nodes, never markup, because job data is not trusted.

const SVG = 'http://www.w3.org/2000/svg'

/** Creates an element with attributes, `on…` listeners and children (nodes or texts); skips null, undefined and false. */
export function h(tag, props = {}, ...children) {
  return applyProps(document.createElement(tag), props, children)
}

export function svg(tag, props = {}, ...children) {
  return applyProps(document.createElementNS(SVG, tag), props, children)
}

function applyProps(node, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value)
    else node.setAttribute(name, value === true ? '' : value)
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== false))
  return node
}

/** Sets the text of a node only if it differs, because setting it would clear the selection. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text
}

/**
 * Marks a button as busy and sets its text. A disabled button would lose the focus, so its listener must check
 * `isBusy`.
 */
export function setBusy(button, text) {
  button.setAttribute('aria-disabled', 'true')
  setText(button, text)
}

export const isBusy = (button) => button.hasAttribute('aria-disabled')

/** Focuses a node, even one outside the tab order. */
export function focusNode(node, options) {
  // The getter returns 0 for focusable elements and -1 for all others. Setting the same value makes any element
  // focusable.
  node.tabIndex = node.tabIndex
  node.focus(options)
}

/**
 * Redraws the contents of a node and keeps the focus, even if the focused element moves. If that element is gone or
 * hidden, the focus goes to a button or link in the same row. Otherwise it goes to the next row or to the section,
 * where a key press triggers no action by mistake.
 */
export function keepFocus(parent, draw) {
  const focused = document.activeElement
  if (focused === parent || !parent.contains(focused)) return draw()
  const ancestors = []
  for (let node = focused; node !== parent; node = node.parentElement) ancestors.push(node)
  const position = [...parent.children].indexOf(ancestors.at(-1))
  draw()
  if (focused === document.activeElement && isShown(focused)) return
  const remaining = ancestors.filter(isShown)
  const [to] = remaining.flatMap((node) => (node === focused ? node : [...node.querySelectorAll('button, a[href]')].filter(isShown)))
  const row = remaining.at(-1) ?? parent.children[Math.min(position, parent.children.length - 1)]
  focusNode(to ?? row ?? parent.closest('section'), { preventScroll: true })
}

/** Redraws the contents of a node. The focus goes to the new control with the same name, or stays where it is. */
export function keepNamedFocus(parent, draw) {
  const nameOf = (node) => node.getAttribute('aria-label') ?? node.firstChild?.textContent
  const focused = parent.contains(document.activeElement) ? document.activeElement : null
  draw()
  if (focused === null || focused === document.activeElement) return
  const same = [...parent.querySelectorAll(focused.tagName)].find((node) => nameOf(node) === nameOf(focused))
  if (same !== undefined) same.focus({ preventScroll: true })
  else focusNode(parent.closest('section') ?? parent, { preventScroll: true })
}

const isShown = (node) => node.checkVisibility()

const rowsByParent = new WeakMap()

/**
 * Updates the children of a node to match a list. Each key has one row `{node, update}`. A row keeps its selection,
 * images and focus until its item leaves the list.
 */
export function reconcile(parent, items, keyOf, make) {
  keepFocus(parent, () => reconcileRows(parent, items, keyOf, make))
}

function reconcileRows(parent, items, keyOf, make) {
  const known = rowsByParent.get(parent) ?? new Map()
  rowsByParent.set(parent, known)
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

let panelCount = 0

/** Makes a section with a heading. `tools` are buttons and menus next to it. */
export function panel(title, { tools = [], ...props }, ...children) {
  const id = `h${++panelCount}`
  const shown = [tools].flat().filter(Boolean)
  const bar = shown.length === 0 ? null : h('div', { class: 'actions tools' }, ...shown)
  return h('section', { class: 'panel', 'aria-labelledby': id, ...props }, h('div', { class: 'head' }, h('h2', { id }, title), bar), ...children)
}

const ANNOUNCEMENT_MS = 6000
let announcementTimer = null

/** Shows a message that screen readers read out. `isBad` marks a failure, which stays until the next message. */
export function announce(text, { isBad = false } = {}) {
  const status = document.getElementById('announcement')
  clearTimeout(announcementTimer)
  if (!isBad) announcementTimer = setTimeout(() => setText(status, ''), ANNOUNCEMENT_MS)
  status.textContent = ''
  status.className = isBad ? 'bad' : ''
  // Screen readers skip an unchanged text.
  requestAnimationFrame(() => {
    status.textContent = text
  })
}

/** Copies a text and announces it. */
export async function copyText(text, name) {
  try {
    await navigator.clipboard.writeText(text)
    announce(`Copied ${name}`)
  } catch {
    announce(`The browser does not allow copying. Select the ${name} and copy it.`, { isBad: true })
  }
}

/** Makes a button that copies a text. `name` says which. */
export const copyButton = (text, name, label = 'Copy') => h('button', { class: 'plain', type: 'button', 'aria-label': `Copy ${name}`, onclick: () => copyText(text, name) }, label)
