// One page of a document: its image next to its text, with the words of a search marked.

import { call } from '../parts/api.js'
import { copyButton, h, svg } from '../parts/dom.js'
import { chip } from '../parts/table.js'
import { mark, split } from './marks.js'
import { showMarkdown } from './markdown-view.js'

/** Returns the way in which a page was read: `text`, `ocr`, `model`, `unread` or `waiting`. */
export function methodOf(row) {
  if (row === undefined) return 'waiting'
  if (row.status === 'unread' || row.method === 'none') return 'unread'
  if (row.method === 'text_layer') return 'text'
  return row.model === null || row.model.startsWith('tesseract') ? 'ocr' : 'model'
}

const LABELS = { text: 'text layer', unread: 'unread' }

function labelOf(page) {
  const method = methodOf(page)
  if (LABELS[method] !== undefined) return LABELS[method]
  return page.model === null ? 'blank' : method === 'ocr' ? `OCR, ${page.model}` : `read by ${page.model}`
}

/** Makes the row of a page, which is empty until `build()`. */
export function makePage(path, number) {
  const picture = h('div', { class: 'picture' })
  const chips = h('span', { class: 'chips' })
  const text = h('div', { class: 'text', tabindex: '0', role: 'region', 'aria-label': `Text of page ${number}` })
  const heading = h('h2', {}, `Page ${number}`)
  const copy = h('span', { class: 'copy' })
  const node = h('li', { class: 'page panel waits', id: `page-${number}`, 'data-page': number, 'aria-label': `Page ${number}` })
  let isBuilt = false
  let shown = null
  const drawText = (words) => {
    if (shown === null) return
    const { page, markdown } = shown
    const detail = page.detail === null ? [] : [h('p', { class: 'soft' }, page.detail)]
    const content = markdown !== null ? [showMarkdown(markdown, words)] : mark(page.text, words)
    text.replaceChildren(...detail, ...(page.text !== '' ? content : page.detail === null ? [h('p', { class: 'soft' }, 'No text')] : []))
  }
  const marks = svg('svg', { class: 'marks', 'aria-hidden': 'true' })
  let marked = ''
  const drawPicture = (page) => {
    marked = ''
    marks.replaceChildren()
    if (!page.has_image) return picture.replaceChildren()
    const image = h('img', { src: `${path}/pages/${number}/image`, alt: `Image of page ${number}`, width: page.width, height: page.height })
    image.addEventListener('error', () =>
      picture.replaceChildren(h('span', { class: 'soft' }, 'The image could not be loaded. ', h('button', { class: 'plain', type: 'button', 'aria-label': `Load the image of page ${number} again`, onclick: () => drawAgain(page) }, 'Try again'))),
    )
    picture.replaceChildren(image, marks)
  }
  const drawAgain = (page) => {
    const words = marked.split(' ').filter((word) => word !== '')
    drawPicture(page)
    void row.markPicture(words)
  }
  const row = {
    number,
    node,
    heading,
    near: false,
    ready: false,
    shown: false,
    /** Adds heading, image and text, which thousands of pages out of view need not have. */
    build: () => {
      if (isBuilt) return
      isBuilt = true
      node.replaceChildren(picture, h('div', { class: 'beside' }, h('div', { class: 'line' }, heading, chips, h('span', { class: 'gap' }), copy), text))
    },
    size: ({ has_image, width, height }) => {
      node.classList.toggle('bare', !has_image)
      if (width !== null) picture.style.aspectRatio = `${width} / ${height}`
    },
    showWaiting: () => {
      shown = null
      node.classList.add('waits')
    },
    showError: (problem, tryAgain) => {
      node.classList.remove('waits')
      text.replaceChildren(h('p', { class: 'bad' }, problem), h('button', { class: 'plain', type: 'button', onclick: tryAgain }, 'Try again'))
    },
    drawText,
    /** Marks words on the image, if the page has their places. */
    async markPicture(words) {
      const key = words.join(' ')
      if (!row.near || shown === null || key === marked) return
      marked = key
      const { page } = shown
      // The service reads the file again to find places, so this asks only for pages with a match.
      if (!page.has_image || !split(page.text, words).some(([, isMatch]) => isMatch)) return marks.replaceChildren()
      // The marks are an extra: a failure leaves those in the text, until the page comes into view again.
      const found = await call('GET', `${path}/pages/${number}/words?search=${encodeURIComponent(key)}`).catch(() => null)
      if (marked !== key) return
      if (found === null) {
        marked = ''
        return marks.replaceChildren()
      }
      marks.setAttribute('viewBox', `0 0 ${page.width} ${page.height}`)
      const boxes = found.filter(({ text: word }) => split(word, words).some(([, isMatch]) => isMatch))
      marks.replaceChildren(...boxes.map(({ left, top, width, height }) => svg('rect', { x: left * page.width, y: top * page.height, width: width * page.width, height: height * page.height })))
    },
    show(page, markdown, words) {
      const isSame = shown !== null && JSON.stringify(shown.page) === JSON.stringify(page)
      shown = { page, markdown }
      node.classList.remove('waits')
      row.size(page)
      chips.replaceChildren(chip(labelOf(page), page.status === 'read' ? 'good' : 'warn'))
      const name = markdown === null ? `text of page ${number}` : `Markdown of page ${number}`
      copy.replaceChildren(...(page.text === '' ? [] : [copyButton(markdown ?? page.text, name)]))
      drawText(words)
      if (!isSame) drawPicture(page)
    },
  }
  return row
}
