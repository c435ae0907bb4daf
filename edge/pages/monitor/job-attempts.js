// Panel with the attempts of a job on one time scale. Shows the wait, run, worker and outcome of each attempt.

import { timeline } from '../parts/chart.js'
import { h, panel } from '../parts/dom.js'
import { formatDuration, formatTimeMs, now } from '../parts/format.js'
import { chip } from '../parts/table.js'

const REDRAW_MS = 1000

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
  const list = h('div', {})
  const empty = h('p', { class: 'soft' }, 'No worker has claimed this job yet.')
  let [attempts, shown] = [[], '']
  const draw = () => list.replaceChildren(timeline('Attempts', attempts.map(itemOf)))
  const update = (details) => {
    attempts = details.attempts
    empty.hidden = attempts.length > 0
    const key = JSON.stringify(attempts)
    if (attempts.length > 0 && key !== shown) draw()
    shown = key
  }
  setInterval(() => {
    if (attempts.at(-1)?.ended_at === null) draw()
  }, REDRAW_MS)
  return { node: panel('Attempts', {}, list, empty), update }
}

const dueOf = ({ claimed_at, waited_seconds }) => Date.parse(claimed_at) - waited_seconds * 1000
const endOf = ({ claimed_at, ended_at }) => (ended_at === null ? Math.max(now(), Date.parse(claimed_at)) : Date.parse(ended_at))

function itemOf(attempt) {
  const { attempt: number, worker, claimed_at, ended_at, waited_seconds, ran_seconds, outcome, error } = attempt
  const [text, tone] = OUTCOMES[outcome] ?? RUNNING
  const claimed = Date.parse(claimed_at)
  const ran = formatDuration(ran_seconds === null ? endOf(attempt) - claimed : ran_seconds * 1000)
  const waited = waited_seconds > 0 ? [{ from: dueOf(attempt), to: claimed, kind: 'waited' }] : []
  return {
    label: h('span', { class: 'line' }, h('strong', {}, `Attempt ${number}`), chip(text, tone)),
    note: worker && h('code', {}, worker),
    spans: [...waited, { from: claimed, to: endOf(attempt), kind: 'ran' }],
    more: [
      h(
        'div',
        { class: 'line under' },
        h('span', { class: 'key waited figure' }, `Waited ${formatDuration(waited_seconds * 1000)}`),
        h('span', { class: 'key ran figure' }, ended_at === null ? `Running for ${ran}` : `Ran ${ran}`),
        h('span', { class: 'gap' }),
        h('span', { class: 'figure soft' }, `${formatTimeMs(claimed_at)} – ${ended_at === null ? '' : formatTimeMs(ended_at)}`),
      ),
      error && h('p', { class: 'bad' }, error.detail, ' ', h('code', {}, error.code)),
    ],
  }
}
