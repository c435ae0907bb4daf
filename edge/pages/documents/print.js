// Prints the text of a document without the rest of the page.

import { h } from '../parts/dom.js'
import { formatCount } from '../parts/format.js'
import { showMarkdown } from './markdown-view.js'

/** Prints all pages of a document. `text` reads them. */
export async function printText(record, text) {
  const pages = await text.read()
  const node = h('article', { class: 'print' }, ...pages.map((page) => h('section', {}, h('h2', {}, `Page ${formatCount(page.number)}`), showMarkdown(page.text, []))))
  document.querySelector('.print')?.remove()
  document.getElementById('view').append(node)
  document.body.classList.add('prints')
  const end = () => {
    document.body.classList.remove('prints')
    node.remove()
  }
  // Some browsers return from `print` before they have drawn the page.
  addEventListener('afterprint', end, { once: true })
  window.print()
  return null
}
