// Toolbar of a document's pages: the page to go to, the search in the text, the view and printing.

import { actionButton, button } from '../parts/actions.js'
import { announce, h, panel, setText } from '../parts/dom.js'
import { replaceAddress } from '../parts/filters.js'
import { formatCount } from '../parts/format.js'
import { shortcut } from '../parts/shortcuts.js'
import { countMarks, readWords } from './marks.js'
import { printText } from './print.js'
import { countOf, readText } from './records.js'

const WAIT_MS = 300

/** Makes the toolbar. `pages` is the list of pages, and `strip` shows them. */
export function makeToolbar(record, path, { pages, strip }) {
  const text = makeText(path)
  const number = h('input', { type: 'number', min: 1, value: 1, 'aria-label': 'Page', onchange: () => pages.go(Number(number.value)) })
  const total = h('span', { class: 'soft figure' })
  const step = (by) => pages.go(pages.current() + by)
  const turn = h('span', { class: 'actions turn' }, button('‹', () => step(-1), { label: 'Previous page' }), h('label', { class: 'inline' }, number, total), button('›', () => step(1), { label: 'Next page' }))
  const finder = makeFinder(text, { pages, strip })
  const views = h('select', { 'aria-label': 'View', onchange: () => pages.setMarkdown(views.value === 'markdown') }, h('option', { value: 'text' }, 'Text'), h('option', { value: 'markdown' }, 'Markdown'))
  const download = h('a', { class: 'button plain', href: `${path}?format=markdown`, download: `${record.title}.md`, 'aria-label': 'Download Markdown' }, 'Download Markdown')
  const print = actionButton('Print text', 'Preparing…', 'Print text', () => printText(record, text), true)
  const node = panel('Pages', { class: 'panel toolbar' }, h('div', { class: 'bar' }, turn, views, finder.node, h('span', { class: 'actions' }, download, print)), strip.node)
  shortcut('j', 'Next page', () => step(1))
  shortcut('k', 'Previous page', () => step(-1))
  shortcut('ArrowRight', 'Next page', () => step(1))
  shortcut('ArrowLeft', 'Previous page', () => step(-1))
  shortcut('n', 'Next page with the search', () => finder.step(1))
  shortcut('p', 'Previous page with the search', () => finder.step(-1))
  // The browser prints what is there, and only pages in view are.
  addEventListener('keydown', (event) => {
    if (event.key !== 'p' || !(event.ctrlKey || event.metaKey) || event.altKey || pages.total() === 0) return
    event.preventDefault()
    print.click()
  })
  return {
    node,
    setCurrent: (page) => {
      if (document.activeElement !== number) number.value = page
      strip.setCurrent(page)
    },
    /** Shows the rows of pages, of `count` pages. */
    show: (rows, count) => {
      node.hidden = count === 0
      number.max = count
      setText(total, `of ${formatCount(count)}`)
      strip.show(rows, count)
    },
    /** Reads the text again, because the document has been read again. */
    refresh: () => {
      text.forget()
      return finder.find()
    },
  }
}

/** Reads the text of all pages once, when it is first needed. */
function makeText(path) {
  let reading = null
  const read = async () => {
    const parts = (await readText(`${path}?format=markdown`)).split(/^<!-- page (\d+) -->$/m)
    return Array.from({ length: (parts.length - 1) / 2 }, (_, i) => ({ number: Number(parts[2 * i + 1]), text: parts[2 * i + 2].trim() }))
  }
  return {
    read: () => {
      reading ??= read().catch((error) => {
        reading = null
        throw error
      })
      return reading
    },
    forget: () => (reading = null),
  }
}

function makeFinder(text, { pages, strip }) {
  const input = h('input', { type: 'search', name: 'find', autocomplete: 'off', value: new URLSearchParams(location.search).get('search') ?? '' })
  const result = h('span', { class: 'soft figure', role: 'status' })
  const before = button('↑', () => step(-1), { label: 'Previous page with the search' })
  const after = button('↓', () => step(1), { label: 'Next page with the search' })
  let hits = []
  let timer = null
  const step = (by) => {
    if (hits.length === 0) return announce('No page has these words')
    const current = pages.current()
    const next = by > 0 ? (hits.find((page) => page > current) ?? hits[0]) : (hits.findLast((page) => page < current) ?? hits.at(-1))
    pages.go(next)
    setText(result, `${formatCount(hits.indexOf(next) + 1)} of ${countOf(hits.length, 'page')}`)
  }
  const show = (numbers) => {
    hits = numbers
    strip.setHits(numbers)
    before.hidden = after.hidden = numbers.length === 0
  }
  const find = async () => {
    const words = readWords(input.value)
    const wanted = input.value
    pages.setWords(words)
    if (words.length === 0) {
      setText(result, '')
      return show([])
    }
    try {
      const all = await text.read()
      if (wanted !== input.value) return
      show(all.filter((page) => countMarks(page.text, words) > 0).map((page) => page.number))
      setText(result, hits.length === 0 ? 'Not found' : `On ${countOf(hits.length, 'page')}`)
    } catch (error) {
      setText(result, error.message)
    }
  }
  const changed = () => {
    clearTimeout(timer)
    replaceAddress({ search: input.value.trim() })
    find()
  }
  input.addEventListener('input', () => {
    clearTimeout(timer)
    timer = setTimeout(changed, WAIT_MS)
  })
  const submit = async (event) => {
    event.preventDefault()
    clearTimeout(timer)
    replaceAddress({ search: input.value.trim() })
    await find()
    if (hits.length > 0) step(1)
  }
  show([])
  const node = h('form', { class: 'finder', role: 'search', 'aria-label': 'In this document', onsubmit: submit }, h('label', { class: 'inline' }, 'Find ', input), before, after, result)
  return { node, find, step }
}
