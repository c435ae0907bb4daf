// Panel with the attempts of a job on one time scale. Shows the wait, run, worker and outcome of each attempt.

import { h, panel, svg } from './dom.js'
import { formatTimeMs, now, formatDuration } from './format.js'

const REDRAW_MS = 1000
const WIDTH = 1000
// Keeps a bar of milliseconds visible on a scale of hours.
const MIN_WIDTH = 3

const OUTCOMES = {
  done: ['done', 'good'],
  failed: ['failed', 'bad'],
  cancelled: ['cancelled', 'warn'],
  retry: ['failed, retried', 'warn'],
  release: ['released', 'warn'],
  interrupted: ['interrupted', 'warn'],
}
const RUNNING = ['running', 'live']

export function makeAttempts() {
  const list = h('ol', { class: 'attempts' })
  const empty = h('p', { class: 'soft' }, 'No worker has claimed this job yet.')
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
  const ran = formatDuration(ran_seconds === null ? endOf(attempt) - Date.parse(claimed_at) : ran_seconds * 1000)
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
      h('span', { class: 'key waited figure' }, `Waited ${formatDuration(waited_seconds * 1000)}`),
      h('span', { class: 'key ran figure' }, ended_at === null ? `Running for ${ran}` : `Ran ${ran}`),
      h('span', { class: 'gap' }),
      h('span', { class: 'figure soft' }, `${formatTimeMs(claimed_at)} – ${ended_at === null ? '' : formatTimeMs(ended_at)}`),
    ),
    error && h('p', { class: 'bad' }, error.detail, ' ', h('code', {}, error.code)),
  )
}

/**
 * Draws waiting and running time as a bar. Screen readers skip it, because the texts next to it give the same values.
 */
function barOf(attempt, from, to) {
  const x = (at) => ((at - from) / (to - from)) * WIDTH
  const segment = (kind, start, end) => {
    const width = Math.max(MIN_WIDTH, x(end) - x(start))
    return svg('rect', { class: kind, x: Math.min(x(start), WIDTH - width).toFixed(1), y: 0, width: width.toFixed(1), height: 10 })
  }
  const claimed = Date.parse(attempt.claimed_at)
  return svg(
    'svg',
    { class: 'span', viewBox: `0 0 ${WIDTH} 10`, preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    attempt.waited_seconds > 0 && segment('waited', dueOf(attempt), claimed),
    segment('ran', claimed, endOf(attempt)),
  )
}
