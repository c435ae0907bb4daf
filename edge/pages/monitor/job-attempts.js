// The attempts of a job on one line of time: how long each waited and ran, where, and how it ended.

import { h, panel, svg } from './dom.js'
import { instant, now, span } from './format.js'

const REDRAW_MS = 1000
const WIDTH = 1000
// A moment among hours can still be seen.
const MIN_WIDTH = 3

const OUTCOMES = {
  done: ['done', 'good'],
  failed: ['failed', 'bad'],
  cancelled: ['cancelled', 'warn'],
  retry: ['failed, tried again', 'warn'],
  release: ['released', 'warn'],
  interrupted: ['interrupted', 'warn'],
}
const RUNNING = ['running', 'live']

export function makeAttempts() {
  const list = h('ol', { class: 'attempts' })
  const empty = h('p', { class: 'soft' }, 'No worker has taken it yet.')
  let attempts = []
  const draw = () => {
    const from = Math.min(...attempts.map(dueOf))
    const to = Math.max(...attempts.map(endOf), from + 1)
    list.replaceChildren(...attempts.map((attempt) => itemOf(attempt, from, to)))
  }
  const update = (details) => {
    attempts = details.attempts
    empty.hidden = attempts.length > 0
    draw()
  }
  setInterval(() => {
    if (attempts.at(-1)?.ended_at === null) draw()
  }, REDRAW_MS)
  return { node: panel('Attempts', {}, list, empty), update }
}

const dueOf = ({ claimed_at, waited_seconds }) => Date.parse(claimed_at) - waited_seconds * 1000
const endOf = ({ claimed_at, ended_at }) => (ended_at === null ? Math.max(now(), Date.parse(claimed_at)) : Date.parse(ended_at))

function itemOf(attempt, from, to) {
  const { attempt: number, worker, claimed_at, ended_at, waited_seconds, ran_seconds, outcome, error } = attempt
  const [text, tone] = OUTCOMES[outcome] ?? RUNNING
  const ran = span(ran_seconds === null ? endOf(attempt) - Date.parse(claimed_at) : ran_seconds * 1000)
  return h(
    'li',
    {},
    h(
      'div',
      { class: 'line' },
      h('strong', {}, `Attempt ${number}`),
      h('span', { class: `chip ${tone}` }, text),
      h('span', { class: 'gap' }),
      worker && h('code', { class: 'soft' }, worker),
    ),
    barOf(attempt, from, to),
    h(
      'div',
      { class: 'line under' },
      h('span', { class: 'key waited figure' }, `Waited ${span(waited_seconds * 1000)}`),
      h('span', { class: 'key ran figure' }, ended_at === null ? `Running for ${ran}` : `Ran ${ran}`),
      h('span', { class: 'gap' }),
      h('span', { class: 'figure soft' }, `${instant(claimed_at)} – ${ended_at === null ? '' : instant(ended_at)}`),
    ),
    error && h('p', { class: 'bad' }, error.detail, ' ', h('code', {}, error.code)),
  )
}

/** What the texts beside it say, to be seen at once. */
function barOf(attempt, from, to) {
  const x = (at) => ((at - from) / (to - from)) * WIDTH
  const piece = (kind, start, end) => {
    const width = Math.max(MIN_WIDTH, x(end) - x(start))
    return svg('rect', { class: kind, x: Math.min(x(start), WIDTH - width).toFixed(1), y: 0, width: width.toFixed(1), height: 10 })
  }
  const claimed = Date.parse(attempt.claimed_at)
  return svg(
    'svg',
    { class: 'span', viewBox: `0 0 ${WIDTH} 10`, preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    attempt.waited_seconds > 0 && piece('waited', dueOf(attempt), claimed),
    piece('ran', claimed, endOf(attempt)),
  )
}
