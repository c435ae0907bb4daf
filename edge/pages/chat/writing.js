// The row of an answer while it is written.

import { h, setText } from '../parts/dom.js'
import { markdownView } from '../parts/markdown.js'
import { callView } from './message.js'

/** Makes the row. `follow` runs before and after a redraw, so that the end of the text stays in view. */
export function writingRow(keepEnd) {
  const view = markdownView()
  const state = h('p', { class: 'soft waiting' }, 'Waiting for the model')
  const calls = h('div', {})
  // The answer is announced once, when it is complete.
  const node = h('li', { class: 'message assistant writing', 'aria-live': 'off' }, h('h3', { class: 'hidden' }, 'Answer'), view.node, calls, state)
  let text = ''
  let frame = null
  const draw = () => {
    frame ??= requestAnimationFrame(() => {
      frame = null
      keepEnd(() => {
        view.update(text)
        state.hidden = text !== ''
      })
    })
  }
  const say = (given) => {
    setText(state, given)
    state.hidden = false
  }
  return {
    node,
    text: () => text,
    end: () => {
      cancelAnimationFrame(frame)
      node.remove()
    },
    on: {
      connect: () => {},
      chunk: ({ content }) => {
        text += content
        draw()
      },
      tool_call: (call) => calls.append(callView(call)),
      restart: () => {
        text = ''
        calls.replaceChildren()
        draw()
        say('The model was interrupted and starts over')
      },
      lost: () => say('Connection lost, reconnecting'),
    },
  }
}
