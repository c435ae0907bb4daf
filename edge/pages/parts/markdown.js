// Shows Markdown as elements, made from the parser's tokens. HTML in it stays text.

import MarkdownIt from '/pages/vendor/markdown-it.mjs'
import { copyText, h } from './dom.js'

const parser = new MarkdownIt({ html: false, linkify: true })

/**
 * Makes a view of Markdown. Its headings begin at level `base`. `cite(number)` returns a node for a citation such as
 * `[1]`, or null. `update(text)` redraws only the blocks that have changed, so that a growing text stays cheap.
 */
export function markdownView(text = '', { base = 3, cite = () => null } = {}) {
  const node = h('div', { class: 'markdown' })
  let shown = []
  const update = (given) => {
    const blocks = splitBlocks(given, base)
    let same = 0
    while (same < blocks.length && same < shown.length && blocks[same].key === shown[same].key) same++
    while (node.childElementCount > same) node.lastElementChild.remove()
    node.append(...blocks.slice(same).map(({ tokens }) => renderBlock(tokens, cite)))
    shown = blocks
  }
  update(text)
  return { node, update }
}

/** Returns the address if it leads to a web page or to mail; otherwise null. */
export function safeAddress(given) {
  try {
    const { protocol, href } = new URL(given)
    return /^(https?|mailto)\W$/.test(protocol) ? href : null
  } catch {
    return null
  }
}

/** Splits a text into its outermost blocks. The key of a block has all that its elements depend on. */
function splitBlocks(text, base) {
  const environment = {}
  const tokens = parser.parse(text, environment)
  const lines = text.split('\n')
  const references = JSON.stringify(environment.references ?? {})
  const blocks = []
  const open = []
  let first = 0
  let depth = 0
  for (const [i, token] of tokens.entries()) {
    if (token.type === 'heading_open') token.rank = rankOf(open, Number(token.tag.slice(1)), base)
    if (token.type === 'heading_close') token.rank = base + open.length - 1
    depth += token.nesting
    if (depth > 0) continue
    const part = tokens.slice(first, i + 1)
    const [from, to] = part[0].map ?? [0, 0]
    blocks.push({ tokens: part, key: `${part[0].type} ${part.find(({ rank }) => rank)?.rank ?? ''} ${references} ${lines.slice(from, to).join('\n')}` })
    first = i + 1
  }
  return blocks
}

/** Returns the level of a heading on the page, where no level is left out. */
function rankOf(open, level, base) {
  while (open.length > 0 && open.at(-1) >= level) open.pop()
  open.push(level)
  return Math.min(6, base + open.length - 1)
}

function renderBlock(tokens, cite) {
  const root = document.createDocumentFragment()
  renderTokens(tokens, root, cite)
  // Each block is one element, because `update` counts them.
  return root.childElementCount === 1 && root.childNodes.length === 1 ? root : h('div', {}, root)
}

function renderTokens(tokens, root, cite) {
  const parents = [root]
  for (const token of tokens) {
    const parent = parents.at(-1)
    if (token.nesting === -1) parents.pop()
    else if (token.nesting === 0) parent.append(...leafOf(token, parents, cite))
    // The paragraphs of a tight list have no element.
    else if (token.hidden) parents.push(parent)
    else {
      const { outer, inner = outer } = elementOf(token)
      parent.append(outer)
      parents.push(inner)
    }
  }
}

function elementOf(token) {
  if (token.type === 'heading_open') return { outer: h(`h${token.rank}`, {}) }
  if (token.type === 'link_open') return { outer: linkOf(token.attrGet('href')) }
  if (token.type === 'table_open') {
    const inner = h('table', {})
    return { outer: h('div', { class: 'scroll', role: 'group', tabindex: '0', 'aria-label': 'Table' }, inner), inner }
  }
  if (token.type === 'ordered_list_open') return { outer: h('ol', { start: token.attrGet('start') }) }
  if (/^t[hd]_open$/.test(token.type)) return { outer: h(token.tag, { class: /right/.test(token.attrGet('style') ?? '') ? 'number' : null }) }
  return { outer: h(token.tag, {}) }
}

function linkOf(given) {
  const href = safeAddress(given)
  return href === null ? h('span', {}) : h('a', { href, rel: 'noopener noreferrer', target: '_blank' })
}

function leafOf(token, parents, cite) {
  const { type, content } = token
  if (type === 'inline') {
    const inner = document.createDocumentFragment()
    renderTokens(token.children, inner, cite)
    return [inner]
  }
  if (type === 'text') return parents.some(({ tagName }) => tagName === 'A') ? [content] : withCitations(content, cite)
  if (type === 'softbreak') return ['\n']
  if (type === 'hardbreak') return [h('br')]
  if (type === 'hr') return [h('hr')]
  if (type === 'code_inline') return [h('code', {}, content)]
  if (type === 'fence' || type === 'code_block') return [codeBlock(content, token.info?.trim().split(/\s/)[0] ?? '')]
  if (type === 'image') return [pictureLink(token)]
  return [content]
}

function withCitations(text, cite) {
  return text.split(/(\[\d{1,2}\])/).map((part) => (/^\[\d{1,2}\]$/.test(part) ? (cite(Number(part.slice(1, -1))) ?? part) : part))
}

/** Pictures of other sites would tell them who reads the text, so each is a link. */
function pictureLink(token) {
  const link = linkOf(token.attrGet('src'))
  link.append(`Picture: ${token.content || 'without a description'}`)
  return link
}

function codeBlock(text, language) {
  const code = text.replace(/\n$/, '')
  const copy = h('button', { class: 'plain', type: 'button', 'aria-label': language === '' ? 'Copy code' : `Copy ${language} code`, onclick: () => copyText(code, 'code') }, 'Copy')
  return h('div', { class: 'code-block' }, h('div', { class: 'head' }, h('span', { class: 'soft' }, language), copy), h('pre', { tabindex: '0' }, h('code', {}, code)))
}
