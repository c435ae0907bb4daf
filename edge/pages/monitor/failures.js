// The failed jobs of the last hour, by task and error.

import { call } from './api.js'
import { sparkline } from './chart.js'
import { h, keyed, panel, say } from './dom.js'
import { count, since } from './format.js'
import { bulkButton, linkToJobs } from './bulk.js'

const SECONDS = 3600
const GAP_MS = 2000
const MAX_SHOWN = 20

/** A panel that reads them anew when it is told to, at most every two seconds. */
export function makeFailures() {
  const list = h('ul', { class: 'jobs' })
  const none = h('p', { class: 'soft' }, 'No jobs have failed in the last hour.')
  const more = h('p', { class: 'soft', hidden: true })
  const capped = h('p', { class: 'soft', hidden: true }, 'There are more: the latest ones are counted.')
  let [reading, again] = [false, false]
  const read = async () => {
    if (reading) {
      again = true
      return
    }
    reading = true
    try {
      const { groups, total_is_exact } = await call('GET', `/api/v1/jobs/failures?seconds=${SECONDS}`)
      keyed(list, groups.slice(0, MAX_SHOWN), ({ queue, task, code }) => `${queue} ${task} ${code}`, groupRow)
      none.hidden = groups.length > 0
      more.hidden = groups.length <= MAX_SHOWN
      say(more, `and ${count(Math.max(0, groups.length - MAX_SHOWN))} more kinds`)
      capped.hidden = total_is_exact
    } catch {
      // The stream says what is wrong with the connection or the account.
    }
    setTimeout(() => {
      reading = false
      if (!again) return
      again = false
      read()
    }, GAP_MS)
  }
  const all = h('p', {}, h('a', { href: '/monitor/jobs?status=failed' }, 'All failed jobs'))
  return { node: panel('Failed', {}, list, none, more, capped, all), read }
}

function groupRow({ task, queue, code }) {
  const [jobs, ended, detail] = [h('span', { class: 'figure' }), h('span', { class: 'figure soft' }), h('span', { class: 'bad' })]
  const trend = sparkline()
  const filter = { task, code }
  const retry = bulkButton('retry', filter, `Retry all of ${task} that failed with ${code}`)
  const node = h(
    'li',
    {},
    h(
      'div',
      { class: 'line' },
      h('a', { class: 'job', href: linkToJobs({ status: 'failed', ...filter }) }, task, h('code', {}, code)),
      h('span', { class: 'chip' }, queue),
      h('span', { class: 'gap' }),
      jobs,
      retry,
    ),
    h('div', { class: 'line under' }, detail, h('span', { class: 'gap' }), h('span', { class: 'trend small' }, trend.node), ended),
  )
  const update = (group) => {
    say(jobs, `${count(group.jobs)}×`)
    say(detail, group.last_detail ?? '')
    since(ended, group.last_at, ' ago')
    retry.hidden = group.retried === group.jobs
    trend.draw([{ values: group.history, kind: 'area' }, { values: group.history, kind: 'line' }], `${count(group.jobs)} failures in the last hour`)
  }
  return { node, update }
}
