// Shows the Markdown of a page.

import { markdownView } from '../parts/markdown.js'
import { mark } from './marks.js'

/** Returns Markdown as a node, with the words of a search marked. */
export function showMarkdown(markdown, words) {
  const { node } = markdownView(markdown, { base: 3 })
  if (words.length > 0) markTexts(node, words)
  return node
}

function markTexts(root, words) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT)
  const texts = []
  while (walker.nextNode()) texts.push(walker.currentNode)
  for (const text of texts) {
    const nodes = mark(text.data, words)
    if (nodes.some((node) => typeof node !== 'string')) text.replaceWith(...nodes)
  }
}
