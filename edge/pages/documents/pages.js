// Pages of a document: each page's image next to its text. Fetches and draws only pages near the viewport, because a
// document may have thousands.

import { call } from '../parts/api.js'
import { focusNode, h } from '../parts/dom.js'
import { makePage } from './one-page.js'
import { readText } from './records.js'

// After a jump to one of the last pages, another page may stand at a third of the height.
const SETTLE_MS = 500

/** Makes the list of pages. `onCurrent(number)` runs when another page is in view. */
export function makePages(path, { onCurrent }) {
  const node = h('ol', { class: 'pages' })
  const pages = []
  const view = { words: [], isMarkdown: false }
  let current = 1
  let jumpedAt = -Infinity
  const near = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        const page = pages[Number(target.dataset.page) - 1]
        page.near = isIntersecting
        if (isIntersecting) page.build()
        load(page)
        page.markPicture(view.words)
      }
    },
    { rootMargin: '600px' },
  )
  // The page at a third of the height is the one that a person looks at.
  const middle = new IntersectionObserver(
    (entries) => {
      if (performance.now() - jumpedAt < SETTLE_MS) return
      for (const { target, isIntersecting } of entries) if (isIntersecting) setCurrent(Number(target.dataset.page))
    },
    { rootMargin: '-33% 0px -66% 0px' },
  )
  const setCurrent = (number) => {
    current = number
    onCurrent(number)
  }

  const load = async (page) => {
    if (!page.near || !page.ready || page.shown) return
    page.shown = true
    try {
      const [record, markdown] = await Promise.all([call('GET', `${path}/pages/${page.number}`), view.isMarkdown ? readText(`${path}/pages/${page.number}?format=markdown`) : null])
      page.show(record, markdown, view.words)
      page.markPicture(view.words)
    } catch (error) {
      page.shown = false
      page.showError(error.message, () => load(page))
    }
  }
  const ensurePages = (total) => {
    while (pages.length < total) {
      const page = makePage(path, pages.length + 1)
      pages.push(page)
      node.append(page.node)
      near.observe(page.node)
      middle.observe(page.node)
    }
  }
  const setReady = (page) => {
    page.ready = true
    load(page)
  }
  const reload = () => {
    for (const page of pages) {
      page.shown = false
      load(page)
    }
  }
  return {
    node,
    total: () => pages.length,
    current: () => current,
    showRows: (rows) => {
      ensurePages(rows.length)
      for (const row of rows) {
        const { page_number } = row
        ensurePages(page_number)
        pages[page_number - 1].size(row)
        setReady(pages[page_number - 1])
      }
    },
    markReady: (count, total) => {
      ensurePages(total)
      pages.slice(0, count).forEach(setReady)
    },
    reset: () => {
      for (const page of pages) {
        page.ready = false
        page.shown = false
        page.showWaiting()
      }
    },
    setWords: (words) => {
      view.words = words
      for (const page of pages) {
        page.drawText(words)
        page.markPicture(words)
      }
    },
    setMarkdown: (isMarkdown) => {
      view.isMarkdown = isMarkdown
      reload()
    },
    /** Scrolls to a page and focuses its heading. */
    go: (number) => {
      const page = pages[Math.min(Math.max(1, number), pages.length) - 1]
      if (page === undefined) return
      jumpedAt = performance.now()
      page.build()
      page.node.scrollIntoView({ block: 'start' })
      focusNode(page.heading, { preventScroll: true })
      setCurrent(page.number)
      history.replaceState(history.state, '', `#page-${page.number}`)
    },
  }
}
