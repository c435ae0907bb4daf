// Strip of a document's pages: one look shows how each was read, and which have the words of a search.

import { button } from '../parts/actions.js'
import { h } from '../parts/dom.js'
import { formatCount } from '../parts/format.js'
import { methodOf } from './one-page.js'

const NAMES = { text: 'with a text layer', ocr: 'by OCR', model: 'by a vision model', unread: 'unread', waiting: 'not read yet' }
const MAX_CELLS = 200

/** Returns the method that a cell of several pages shows: one to notice, or else the most frequent. */
function chooseMethod(group) {
  const urgent = ['unread', 'waiting'].find((one) => group.includes(one))
  const count = (method) => group.filter((one) => one === method).length
  return urgent ?? group.reduce((most, method) => (count(method) > count(most) ? method : most))
}

/**
 * Makes the strip. `go(number)` jumps to a page. The strip itself is for the eye and the mouse. The counts below it say
 * the same, and the toolbar has the keys.
 */
export function makeStrip(go) {
  const cells = h('div', { class: 'strip', 'aria-hidden': 'true' })
  const legend = h('p', { class: 'legend soft' })
  const node = h('div', { class: 'methods' }, cells, legend)
  const state = { methods: [], size: 1, hits: new Set(), current: 1 }
  cells.addEventListener('click', ({ target }) => target.dataset.page && go(Number(target.dataset.page)))

  const draw = () => {
    const { methods } = state
    state.size = Math.max(1, Math.ceil(methods.length / MAX_CELLS))
    const starts = Array.from({ length: Math.ceil(methods.length / state.size) }, (_, i) => i * state.size)
    cells.replaceChildren(...starts.map(makeCell))
    mark()
    const count = (method) => methods.filter((one) => one === method).length
    const entries = ['text', 'ocr', 'model', 'unread', 'waiting'].filter((method) => count(method) > 0)
    legend.replaceChildren(...entries.map((method) => h('span', {}, h('span', { class: `swatch ${method}` }), `${formatCount(count(method))} ${NAMES[method]}`)))
    if (count('unread') > 0) legend.append(button('Next unread page', nextUnread))
  }
  const makeCell = (start) => {
    const group = state.methods.slice(start, start + state.size)
    const method = chooseMethod(group)
    const page = start + 1 + group.indexOf(method)
    const title = group.length === 1 ? `Page ${page}: ${NAMES[method]}` : `Pages ${start + 1} to ${start + group.length}`
    return h('span', { class: method, 'data-page': page, 'data-start': start + 1, title })
  }
  const mark = () => {
    for (const cell of cells.children) {
      const start = Number(cell.dataset.start)
      const has = (number) => number >= start && number < start + state.size
      cell.classList.toggle('current', has(state.current))
      cell.classList.toggle('hit', [...state.hits].some(has))
    }
  }
  const nextUnread = () => {
    const next = state.methods.findIndex((method, i) => method === 'unread' && i + 1 > state.current)
    go((next < 0 ? state.methods.indexOf('unread') : next) + 1)
  }
  return {
    node,
    /** Shows the rows of pages, of `total` pages. */
    show: (rows, total) => {
      const byNumber = new Map(rows.map((row) => [row.page_number, row]))
      state.methods = Array.from({ length: Math.max(total, rows.at(-1)?.page_number ?? 0) }, (_, i) => methodOf(byNumber.get(i + 1)))
      draw()
    },
    setCurrent: (number) => {
      state.current = number
      mark()
    },
    setHits: (numbers) => {
      state.hits = new Set(numbers)
      mark()
    },
  }
}
