// Shows the HTML of an email without trusting it: only known elements and a few styles, no scripts, images or forms.

import { h } from '../parts/dom.js'

const KEPT = new Set(['P', 'DIV', 'SPAN', 'BR', 'HR', 'STRONG', 'B', 'EM', 'I', 'U', 'S', 'SMALL', 'SUB', 'SUP', 'UL', 'OL', 'LI', 'BLOCKQUOTE', 'PRE', 'CODE', 'A', 'CENTER'])
// Their contents are no text to read.
const DROPPED = new Set(['SCRIPT', 'STYLE', 'TITLE', 'HEAD', 'NOSCRIPT', 'TEMPLATE', 'IFRAME', 'OBJECT', 'EMBED', 'SVG', 'MATH', 'FORM', 'INPUT', 'SELECT', 'TEXTAREA', 'BUTTON', 'VIDEO', 'AUDIO', 'LINK', 'META'])
// Tables of emails are layout, so their cells become blocks.
const BLOCKS = new Set(['TABLE', 'TBODY', 'THEAD', 'TFOOT', 'TR', 'TD', 'TH', 'SECTION', 'ARTICLE', 'HEADER', 'FOOTER', 'MAIN', 'BODY'])
const STYLES = ['color', 'background-color', 'font-weight', 'font-style', 'font-size', 'text-align', 'text-decoration', 'padding', 'margin', 'border', 'border-radius', 'max-width']

/** Makes a node that shows the HTML of an email. The parsed document is inert: it loads and runs nothing. */
export function showHtml(html) {
  const { body } = new DOMParser().parseFromString(hideStyles(html), 'text/html')
  return h('div', { class: 'letter' }, ...copyChildren(body))
}

/** Renames styles and event handlers, because the policy of this page reports them even in an inert document. */
const hideStyles = (html) => html.replace(/<(\/?)style\b/gi, '<$1template').replace(/<[a-z][^>]*>/gi, (tag) => tag.replace(/([\s/"'])(style|on\w+)(?=\s*=)/gi, '$1 data-$2'))

const copyChildren = (node) => [...node.childNodes].flatMap((child) => copyNode(child) ?? [])

function copyNode(node) {
  if (node.nodeType === Node.TEXT_NODE) return node.data
  if (node.nodeType !== Node.ELEMENT_NODE || DROPPED.has(node.tagName.toUpperCase())) return null
  if (node.tagName === 'IMG') return h('span', { class: 'image' }, node.getAttribute('alt') || 'Image')
  return copyStyle(node, makeCopy(node))
}

function makeCopy(node) {
  const { tagName } = node
  const children = copyChildren(node)
  // Headings of an email must not join those of this page.
  if (/^H[1-6]$/.test(tagName)) return h('p', { class: `title ${tagName.toLowerCase()}` }, ...children)
  if (tagName === 'A') return copyLink(node, children)
  if (BLOCKS.has(tagName) || tagName === 'CENTER') return h('div', {}, ...children)
  return h(KEPT.has(tagName) ? tagName.toLowerCase() : 'span', {}, ...children)
}

function copyLink(node, children) {
  const href = node.getAttribute('href') ?? ''
  if (!/^(https?:|mailto:)/i.test(href)) return h('span', { class: 'link', title: href }, ...children)
  return h('a', { href, title: href, target: '_blank', rel: 'noopener noreferrer' }, ...children)
}

/** Copies styles that can neither load anything nor leave the box. */
function copyStyle(from, to) {
  const probe = h('span', {})
  probe.style.cssText = from.dataset.style ?? ''
  for (const name of STYLES) {
    const value = probe.style.getPropertyValue(name)
    if (value !== '' && !/url|image|var\(|-\d/i.test(value)) to.style.setProperty(name, value)
  }
  return to
}
