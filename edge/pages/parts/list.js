// Lists: tables with filters, an order, columns to choose, selection and pages by cursor.

import { readList, withQuery } from './api.js'
import { announce, focusNode, h, isBusy, panel, setBusy, setText } from './dom.js'
import { filterBar } from './filters.js'
import { formatCount } from './format.js'
import { columnChooser, selectionBar } from './list-tools.js'
import { emptyNotice, failure, skeleton } from './states.js'
import { cell, scrollBox } from './table.js'

// Number of rows up to which a list does not show their number.
const SHORT = 10

/**
 * Makes a list section from a route. Options:
 * - `title`, `path`: the route, with parameters that are always sent; `items(data)`: its rows if the answer has several lists;
 * - `columns`: of `{ name, show(item, api), kind, sort, isHidden }`. `show` returns a text, a node or null. `kind` is a CSS class
 *   such as `name`, `number` or `wide`. `sort` is the value of the route's `sort` parameter. `isHidden` hides it until chosen;
 * - `filters`: see `filterBar`; they and the order are in the address of the page;
 * - `sort`: the initial order; `orders`: `[value, text]` pairs for a select;
 * - `actions(item, api)`: buttons of a row; `bulk`: `[text, run(items, api)]` pairs for selected rows;
 * - `buttons`: buttons above the list, given `api`; `empty`, `emptyMore`: text and nodes when nothing was found;
 * - `key(item)`: the identity of a row; `pageSize`; `note`; `onRead(data)`.
 *
 * `api` has `reload()`, `remove(item)`, `insert(item)`, `replace(item)`, `items()`, `filter()`, and `filterBy(name, value)`, which sets a filter.
 */
export function list(options) {
  const { title, columns, key = (item) => item.id, pageSize = 50, bulk = [] } = options
  const state = { items: [], next: null, total: null, sort: null, selected: new Set() }
  const filters = filterBar(options.filters ?? [], { name: options.name, title, onChange: () => load() })
  state.sort = filters.sort() ?? options.sort ?? null
  // Rows of unchanged items stay, with their focus and selection.
  let made = new WeakMap()
  const chooser = columnChooser(options.name, columns, () => {
    made = new WeakMap()
    redraw()
  })
  const shownColumns = () => columns.filter((column) => chooser.isShown(column))

  const head = h('tr', { role: 'row' })
  const body = h('tbody', { role: 'rowgroup' })
  const table = h('table', { role: 'table' }, h('caption', { class: 'hidden' }, title), h('thead', { role: 'rowgroup' }, head), body)
  const scroller = scrollBox(title, table)
  const count = h('p', { class: 'soft count', role: 'status' })
  const more = h('button', { class: 'plain', type: 'button', hidden: true, onclick: () => readMore() }, 'More')
  const content = h('div', { class: 'body' }, skeleton(5))
  const selection = selectionBar(bulk, state, key, () => api)
  const order = orderSelect(options.orders, () => state.sort, (value) => setSort(value))

  const load = async () => {
    node.setAttribute('aria-busy', 'true')
    const reading = (state.reading = Symbol(title))
    try {
      const path = withQuery(options.path, { limit: pageSize, sort: state.sort, ...filters.query() })
      const page = await readList(path)
      if (reading !== state.reading) return
      Object.assign(state, { items: itemsOf(page), next: page.next, total: page.total })
      state.selected.clear()
      options.onRead?.(page.data)
      redraw()
    } catch (error) {
      if (reading !== state.reading) return
      content.replaceChildren(failure(error, load))
      setText(count, '')
      more.hidden = true
      if (error.status === 0) addEventListener('online', load, { once: true })
    } finally {
      if (reading === state.reading) node.removeAttribute('aria-busy')
    }
  }
  const itemsOf = ({ items, data }) => options.items?.(data) ?? items
  const readMore = async () => {
    if (isBusy(more)) return
    setBusy(more, 'Reading…')
    const { reading } = state
    const last = body.lastElementChild
    try {
      const page = await readList(state.next)
      // The filters or the order have changed meanwhile.
      if (reading !== state.reading) return
      state.items.push(...itemsOf(page))
      state.next = page.next
      redraw()
      announce(`${formatCount(state.items.length)} shown`)
      // After the last page the button is hidden and loses the focus, so focus the first new row.
      if (more.hidden) focusNode(last?.nextElementSibling ?? body)
    } catch (error) {
      announce(error.message, { isBad: true })
    } finally {
      more.removeAttribute('aria-disabled')
      setText(more, 'More')
    }
  }
  const setSort = (sort) => {
    state.sort = sort
    filters.setSort(sort === options.sort ? null : sort)
    return load()
  }
  const redraw = () => {
    const isEmpty = state.items.length === 0
    drawHead()
    keepPlace(body, state.items.map((item) => String(key(item))), () => body.replaceChildren(...state.items.map((item) => made.get(item) ?? makeRow(item))))
    const text = filters.isActive() ? 'Nothing matches these filters.' : (options.empty ?? `No ${title.toLowerCase()} yet.`)
    const clear = filters.isActive() ? [h('button', { class: 'plain', type: 'button', onclick: () => filters.clear() }, 'Clear filters')] : (options.emptyMore?.() ?? [])
    // Moving the table would lose the focus.
    if (isEmpty) content.replaceChildren(emptyNotice(text, ...clear))
    else if (content.firstElementChild !== scroller) content.replaceChildren(scroller)
    // Nothing can be filtered or shown in other columns.
    const isUnused = isEmpty && !filters.isActive()
    for (const tool of [filters.node, chooser.node]) if (tool !== null) tool.hidden = isUnused
    more.hidden = state.next === null
    const shown = formatCount(state.items.length)
    const isShort = state.next === null && state.items.length <= SHORT
    setText(count, isEmpty || isShort ? '' : state.next === null ? `${shown} in all` : state.total === null ? `${shown} shown` : `${shown} of ${formatCount(state.total)}`)
    selection.update()
  }
  const drawHead = () => {
    order?.setValue(state.sort)
    const sortable = (column) => {
      if (column.sort === undefined) return column.name
      const isDown = state.sort === `-${column.sort}`
      const isUp = state.sort === column.sort
      return h('button', { class: 'sort', type: 'button', onclick: () => setSort(isDown ? column.sort : `-${column.sort}`) }, column.name, h('span', { 'aria-hidden': 'true' }, isDown ? ' ↓' : isUp ? ' ↑' : ' ↕'))
    }
    const orderOf = ({ sort }) => (sort === undefined ? null : state.sort === sort ? 'ascending' : state.sort === `-${sort}` ? 'descending' : null)
    const cells = shownColumns().map((column) => h('th', { role: 'columnheader', scope: 'col', class: column.kind ?? '', 'aria-sort': orderOf(column) }, sortable(column)))
    const select = bulk.length === 0 ? [] : [h('th', { role: 'columnheader', scope: 'col', class: 'select' }, selection.all())]
    const act = options.actions === undefined ? [] : [h('th', { role: 'columnheader', scope: 'col', class: 'act' }, h('span', { class: 'hidden' }, 'Actions'))]
    const at = [...head.children].findIndex((one) => one.contains(document.activeElement))
    head.replaceChildren(...select, ...cells, ...act)
    head.children[at]?.querySelector('button, input')?.focus()
  }
  const makeRow = (item) => {
    const cells = shownColumns().map((column) => cell([column.name, column.kind ?? ''], column.show(item, api)))
    const select = bulk.length === 0 ? [] : [h('td', { role: 'cell', class: 'select' }, selection.box(item, options.nameOf?.(item) ?? key(item)))]
    const act = options.actions === undefined ? [] : [h('td', { role: 'cell', class: 'act' }, h('span', { class: 'actions' }, ...[options.actions(item, api)].flat().filter(Boolean)))]
    const row = h('tr', { role: 'row', 'data-item': key(item) }, ...select, ...cells, ...act)
    made.set(item, row)
    return row
  }
  const change = (update) => {
    update()
    redraw()
  }
  const api = {
    reload: load,
    items: () => state.items,
    filter: () => filters.query(),
    filterBy: filters.set,
    remove: (item) =>
      change(() => {
        state.items = state.items.filter((other) => key(other) !== key(item))
        state.selected.delete(key(item))
        if (state.total !== null) state.total--
      }),
    insert: (item) =>
      change(() => {
        state.items.unshift(item)
        if (state.total !== null) state.total++
      }),
    replace: (item) =>
      change(() => {
        made.delete(item)
        state.items = state.items.map((other) => (key(other) === key(item) ? item : other))
      }),
  }
  const tools = [...(options.buttons?.(api) ?? []), order?.node, chooser.node].filter(Boolean)
  const note = options.note ? h('p', { class: 'soft' }, options.note) : null
  const node = panel(title, { class: 'panel list', tools }, note, filters.node, selection.node, content, h('div', { class: 'actions' }, count, more))
  return { node, load, ...api }
}

/**
 * Redraws rows and keeps the focus in the row of the same item. If that item is gone, the focus goes to the next row,
 * where a key press triggers no action by mistake.
 */
function keepPlace(body, keys, draw) {
  const focused = document.activeElement
  const row = body.contains(focused) ? focused.closest('tr') : null
  const place = row === null ? null : { key: row.dataset.item, at: [...body.children].indexOf(row), name: nameOf(focused), fromEnd: controlsOf(row).indexOf(focused) - controlsOf(row).length }
  draw()
  if (place === null || body.contains(document.activeElement) || body.childElementCount === 0) return
  const same = keys.indexOf(place.key)
  const now = body.children[same === -1 ? Math.min(place.at, body.childElementCount - 1) : same]
  const controls = controlsOf(now)
  focusNode(same === -1 ? now : (controls.find((control) => nameOf(control) === place.name) ?? controls.at(place.fromEnd) ?? controls.at(-1) ?? now), { preventScroll: true })
}

const nameOf = (control) => control.getAttribute('aria-label') ?? control.textContent
const controlsOf = (row) => [...row.querySelectorAll('button, a[href], input, select')]

function orderSelect(orders, current, onChange) {
  if (orders === undefined) return null
  const select = h('select', { onchange: () => onChange(select.value === '' ? null : select.value) }, ...orders.map(([value, text]) => h('option', { value, selected: value === (current() ?? '') }, text)))
  return { node: h('label', { class: 'inline' }, 'Order ', select), setValue: (value) => (select.value = value ?? '') }
}
