// Panels of failed jobs, grouped by queue, task and error code.

import { call, withQuery } from '../parts/api.js'
import { h, panel, reconcile, setText } from '../parts/dom.js'
import { formatCount, formatDateTime, formatShort, showAge } from '../parts/format.js'
import { sparkline } from '../parts/spark.js'
import { failure } from '../parts/states.js'
import { bulkButton, jobsPath } from './bulk.js'

const GAP_MS = 2000
const MAX_SHOWN = 50
// Groups in the overview, which links to the others.
const MAX_IN_OVERVIEW = 6
const PERIODS = [
  [3600, 'hour'],
  [86_400, 'day'],
  [604_800, 'week'],
]

/** Makes the panel of the last hour. Its `load` function refreshes it, at most every `GAP_MS`. */
export function makeFailures() {
  const groups = groupList('No jobs have failed in the last hour.', 'in the last hour', MAX_IN_OVERVIEW)
  let [isReading, isOutdated] = [false, false]
  const load = async () => {
    if (isReading) {
      isOutdated = true
      return
    }
    isReading = true
    try {
      groups.show(await call('GET', '/api/v1/jobs/failures?seconds=3600'))
    } catch {
      // Ignore the error, because the monitor's stream already reports connection and access problems.
    }
    setTimeout(() => {
      isReading = false
      if (!isOutdated) return
      isOutdated = false
      load()
    }, GAP_MS)
  }
  const allLink = h(
    'p',
    {},
    h('a', { href: '/monitor/jobs?view=failures' }, 'Failures by task'),
    ' · ',
    h('a', { href: '/monitor/jobs?status=failed' }, 'All failed jobs'),
  )
  return { node: panel('Failed in the last hour', {}, ...groups.nodes, allLink), load }
}

/** Makes the panel that groups failures of a chosen period by task and code. */
export function makeFailureGroups() {
  const select = h('select', {}, ...PERIODS.map(([value, text]) => h('option', { value }, text)))
  select.value = new URLSearchParams(location.search).get('seconds') ?? '86400'
  const groups = groupList('No jobs have failed in this period.', 'in this period', MAX_SHOWN)
  const body = h('div', { class: 'body' }, ...groups.nodes)
  const load = async () => {
    try {
      const answer = await call('GET', withQuery('/api/v1/jobs/failures', { seconds: select.value }))
      body.replaceChildren(...groups.nodes)
      groups.show(answer)
    } catch (error) {
      body.replaceChildren(failure(error, load))
    }
  }
  select.addEventListener('change', () => {
    history.replaceState(null, '', withQuery(location.pathname + location.search, { seconds: select.value }))
    load()
  })
  const period = h('label', { class: 'inline' }, 'The last ', select)
  return {
    node: panel('Failures by task', { tools: [period] }, h('p', { class: 'soft' }, 'Jobs that failed, by task and error code, most first.'), body),
    load,
  }
}

function groupList(nothing, period, most) {
  const list = h('ul', { class: 'jobs' })
  const empty = h('p', { class: 'soft' }, nothing)
  const more = h('p', { class: 'soft', hidden: true })
  const capped = h('p', { class: 'soft', hidden: true }, 'Only the most recent failures are counted.')
  const show = ({ groups, total_is_exact }) => {
    reconcile(
      list,
      groups.slice(0, most),
      ({ queue, task, code }) => `${queue} ${task} ${code}`,
      (group) => groupRow(group, period),
    )
    empty.hidden = groups.length > 0
    more.hidden = groups.length <= most
    setText(more, `and ${formatCount(Math.max(0, groups.length - most))} more kinds of failure`)
    capped.hidden = total_is_exact
  }
  return { nodes: [list, empty, more, capped], show }
}

function groupRow({ task, queue, code }, period) {
  const [jobs, ended, detail] = [h('strong', { class: 'figure' }), h('span', { class: 'figure soft' }), h('span', { class: 'bad detail' })]
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
    setText(expiry, `retry until ${formatShort(group.expires_at)}`)
    expiry.title = formatDateTime(group.expires_at)
    trend.draw(
      [
        { values: group.history, kind: 'area' },
        { values: group.history, kind: 'line' },
      ],
      `${formatCount(group.jobs)} failures ${period}`,
    )
  }
  return { node, update }
}
