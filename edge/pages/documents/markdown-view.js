// Shows the Markdown of a page.

import { h } from '../parts/dom.js'
import { mark } from './marks.js'

/** Returns Markdown as a node, with the words of a search marked. */
export const showMarkdown = (markdown, words) => h('div', { class: 'markdown' }, ...mark(markdown, words))
