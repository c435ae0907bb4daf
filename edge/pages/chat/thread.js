// The part of a conversation that scrolls, and keeps its end in view.

import { h } from '../parts/dom.js'

// Distance to the end, in pixels, up to which new text scrolls the messages.
const NEAR_END = 60
// Time for which the spoken answer stays. Later, a reader would meet it twice.
const SPOKEN_MS = 20_000

/** Makes the part. `keepEnd(change)` runs a change, and keeps the end in view unless the reader has scrolled up. */
export function makeThread() {
  const node = h('div', { class: 'thread', tabindex: '0', role: 'region', 'aria-label': 'Messages' })
  const toEnd = h('button', { class: 'plain to-end', type: 'button', hidden: true, onclick: () => scrollToEnd() }, 'Newest ↓')
  const isAtEnd = () => node.scrollHeight - node.scrollTop - node.clientHeight < NEAR_END
  const scrollToEnd = () => {
    node.scrollTop = node.scrollHeight
  }
  node.addEventListener('scroll', () => (toEnd.hidden = isAtEnd()), { passive: true })
  return {
    node,
    toEnd,
    scrollToEnd,
    keepEnd: (change) => {
      const wasAtEnd = isAtEnd()
      change()
      if (wasAtEnd) scrollToEnd()
      toEnd.hidden = isAtEnd()
    },
    /** Runs a change above the messages in view, which stay where they are. */
    keepPlace: (change) => {
      const before = node.scrollHeight - node.scrollTop
      change()
      node.scrollTop = node.scrollHeight - before
    },
  }
}

/** Makes the text that screen readers read out, which is the whole answer. */
export function makeSpoken() {
  const node = h('p', { class: 'hidden', role: 'status' })
  let timer = null
  const say = (text) => {
    clearTimeout(timer)
    node.textContent = text
    timer = setTimeout(() => (node.textContent = ''), SPOKEN_MS)
  }
  return { node, say }
}
