// Panel of the jobs that failed in the last hour, grouped by queue, task and error code.

import { call } from './api.js'
import { sparkline } from './chart.js'
import { h, reconcile, panel, setText } from './dom.js'
import { formatCount, formatDateTime, showAge } from './format.js'
import { bulkButton, jobsPath } from './bulk.js'

const SECONDS = 3600
const GAP_MS = 2000
const MAX_SHOWN = 20

/** Makes the panel. Its `read` function refreshes it, at most every `GAP_MS`. */
export function makeFailures() {
  const list = h('ul', { class: 'jobs' })
  const empty = h('p', { class: 'soft' }, 'No jobs have failed in the last hour.')
  const more = h('p', { class: 'soft', hidden: true })
  const capped = h('p', { class: 'soft', hidden: true }, 'Only the most recent failures are counted.')
  let [isReading, isOutdated] = [false, false]
  const read = async () => {
    if (isReading) {
      isOutdated = true
      return
    }
    isReading = true
    try {
      const { groups, total_is_exact } = await call('GET', `/api/v1/jobs/failures?seconds=${SECONDS}`)
      reconcile(list, groups.slice(0, MAX_SHOWN), ({ queue, task, code }) => `${queue} ${task} ${code}`, groupRow)
      empty.hidden = groups.length > 0
      more.hidden = groups.length <= MAX_SHOWN
      setText(more, `and ${formatCount(Math.max(0, groups.length - MAX_SHOWN))} more kinds of failure`)
      capped.hidden = total_is_exact
    } catch {
      // Ignore the error, because the monitor's stream already reports connection and access problems.
    }
    setTimeout(() => {
      isReading = false
      if (!isOutdated) return
      isOutdated = false
      read()
    }, GAP_MS)
  }
  const allLink = h('p', {}, h('a', { href: '/monitor/jobs?status=failed' }, 'All failed jobs'))
  return { node: panel('Failed', {}, list, empty, more, capped, allLink), read }
}

function groupRow({ task, queue, code }) {
  const [jobs, ended, detail] = [h('span', { class: 'figure' }), h('span', { class: 'figure soft' }), h('span', { class: 'bad' })]
  const expiry = h('span', { class: 'soft' })
  const trend = sparkline()
  const filter = { task, code }
  const retry = bulkButton('retry', filter, `Retry all ${task} jobs that failed with ${code}`)
  const node = h(
    'li',
    {},
    h(
      'div',
      { class: 'line' },
      h('a', { class: 'job', href: jobsPath({ status: 'failed', ...filter }) }, task, h('code', {}, code)),
      h('span', { class: 'chip' }, queue),
      h('span', { class: 'gap' }),
      jobs,
      retry,
    ),
    h('div', { class: 'line under' }, detail, h('span', { class: 'gap' }), expiry, h('span', { class: 'trend small' }, trend.node), ended),
  )
  const update = (group) => {
    setText(jobs, `${formatCount(group.jobs)}×`)
    setText(detail, group.last_detail ?? '')
    showAge(ended, group.last_at, ' ago')
    retry.hidden = group.retried === group.jobs
    expiry.hidden = retry.hidden
    setText(expiry, `retry until ${formatDateTime(group.expires_at)}`)
    trend.draw([{ values: group.history, kind: 'area' }, { values: group.history, kind: 'line' }], `${formatCount(group.jobs)} failures in the last hour`)
  }
  return { node, update }
}
