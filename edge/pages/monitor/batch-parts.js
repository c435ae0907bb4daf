// Parts of the page of a batch: numbers, buttons, groups and lines of its jobs.

import { actionButton } from '../parts/actions.js'
import { call } from '../parts/api.js'
import { confirmAction } from '../parts/dialog.js'
import { h } from '../parts/dom.js'
import { formatCount, formatDuration, now, shortId } from '../parts/format.js'
import { FINAL_STATUSES as ENDED, jobPath, statusChip } from '../parts/jobs.js'
import { scrollBox, table } from '../parts/table.js'
import { jobsPath } from './bulk.js'

const STATES = ['waiting', 'queued', 'running', 'done', 'failed', 'cancelled']

/** Makes the numbers of jobs by state, as links to the list. */
export function countsOf(id, { status, counts, progress }) {
  const items = STATES.filter((state) => counts[state] > 0).map((state) =>
    h(
      'a',
      { class: 'count', href: jobsPath({ batch: id, status: state }) },
      h('strong', { class: 'figure' }, formatCount(counts[state])),
      ' ',
      statusChip(state),
    ),
  )
  const text = `${status === 'open' ? 'Open for more jobs. ' : ''}${formatCount(progress.current)} of ${formatCount(progress.total)} jobs have ended.`
  return h(
    'div',
    {},
    h('p', { class: 'soft' }, text),
    h('p', { class: 'counts' }, ...items, h('a', { href: jobsPath({ batch: id }) }, 'All jobs of the batch')),
  )
}

/** Makes the buttons that close, cancel or retry the batch, as its state allows. */
export function buttonsOf({ status, counts, name, batch_id }, path, refresh) {
  const subject = name ?? `batch ${shortId(batch_id)}`
  const close = actionButton('Close', 'Closing…', `Close ${subject}`, async () => {
    await call('POST', `${path}/close`)
    refresh()
    return 'The batch takes no more jobs'
  })
  const cancel = actionButton(
    'Cancel',
    'Cancelling…',
    `Cancel ${subject}`,
    async () => {
      if (!(await confirmAction('Cancel the batch?', 'Its jobs that have not ended are cancelled. They cannot be continued.', 'Cancel batch'))) return null
      await call('DELETE', path)
      refresh()
      return 'Cancelling the batch'
    },
    true,
  )
  const retry = actionButton(
    'Retry what failed',
    'Retrying…',
    `Retry what failed in ${subject}`,
    async () => {
      const again = await call('POST', `${path}/retry`)
      location.assign(jobPath(again.batch_id))
      return null
    },
    true,
  )
  cancel.classList.add('risky')
  return [
    status === 'open' && close,
    !ENDED.has(status) && status !== 'cancelling' && cancel,
    ENDED.has(status) && counts.failed + counts.cancelled > 0 && retry,
  ].filter(Boolean)
}

/** Makes the key of the colours in the graph. */
export const legend = () =>
  h('p', { class: 'legend soft' }, ...STATES.map((state) => h('span', {}, h('span', { class: `dot ${state}`, 'aria-hidden': 'true' }), state)))

/** Makes the table of jobs by task and state, for batches that are too large for a graph. */
export function groupsOf(id, jobs) {
  const { node, body, row } = table('Jobs by task and state', [['Task', 'name'], ...STATES.map((state) => [state[0].toUpperCase() + state.slice(1), 'number'])])
  const groups = [...Map.groupBy(jobs, ({ name }) => name)].toSorted(([, a], [, b]) => b.length - a.length)
  for (const [task, its] of groups) {
    const count = (state) => its.filter(({ status }) => status === state).length
    const link = (state) =>
      count(state) === 0
        ? null
        : h(
            'a',
            { href: jobsPath({ batch: id, task, status: state }), 'aria-label': `${formatCount(count(state))} ${state} jobs of ${task}` },
            formatCount(count(state)),
          )
    body.append(row(h('strong', {}, task), ...STATES.map(link)))
  }
  return [scrollBox('Jobs by task and state', node)]
}

/** Returns the item of the timeline for a job that has started. */
export function lineOf({ job_id, name, status, created_at, run_at, started_at, finished_at }) {
  const [due, start] = [Date.parse(run_at ?? created_at), Date.parse(started_at)]
  const end = finished_at === null ? Math.max(now(), start) : Date.parse(finished_at)
  const note = `waited ${formatDuration(start - due)}, ${finished_at === null ? 'running for' : 'ran'} ${formatDuration(end - start)}`
  return {
    label: `${name} ${shortId(job_id)}`,
    href: jobPath(job_id),
    note,
    spans: [{ from: start, to: end, kind: status === 'done' ? 'ran' : status, text: `${status}: ${note}` }],
  }
}
