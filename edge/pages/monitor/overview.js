// First page of the monitor. One stream delivers queue depths, workers and jobs, and triggers the reads of failures.
// `queues.js` polls rates and times.

import { h, panel, reconcile, setText } from '../parts/dom.js'
import { formatCount, formatRate, setClock } from '../parts/format.js'
import { skeleton } from '../parts/states.js'
import { subscribe } from '../parts/streams.js'
import { scrollBox, table, tiles } from '../parts/table.js'
import { makeFailures } from './failures.js'
import { makeQueues } from './queues.js'
import { queuedRow, runningRow, waitingRow, workerRow } from './rows.js'

// Longer lists are on the page of jobs.
const MAX_SHOWN = 20
// A stream that is held back does not keep the panels from the page.
const MAX_WAIT_MS = 2000

export function page({ showConnection }) {
  const figures = tiles([
    ['Queued', 'jobs'],
    ['Running', 'jobs'],
    ['Finished', 'in the last minute'],
    ['Failed', 'in the last 10 minutes'],
    ['Workers', 'alive'],
  ])
  const queues = makeQueues(({ perSecond, failures }) => {
    figures.set('Finished', formatRate(perSecond))
    figures.set('Failed', formatCount(failures))
  })
  const running = makeList('Running', 'No jobs are running.', runningRow)
  const failed = makeFailures()
  const queued = makeList('Queued', 'No jobs are queued.', queuedRow)
  const waiting = makeList('Waiting', 'No jobs wait for others.', waitingRow)
  const workers = makeWorkers()
  const withClock =
    (show) =>
    ({ at, ...data }) => {
      setClock(at)
      show(data.items, data)
    }
  const showQueues = (items, { total }) => {
    queues.show(items)
    figures.set('Queued', formatCount(total.queued))
    figures.set('Running', formatCount(total.running))
    for (const [list, n] of [
      [running, total.running],
      [queued, total.queued],
      [waiting, total.waiting],
    ])
      list.total(n)
  }
  const showWorkers = (items, { total }) => {
    workers.show(items, total.alive)
    figures.set('Workers', formatCount(total.alive))
    streamed.resolve()
  }
  const streamed = Promise.withResolvers()
  subscribe(
    'overview',
    {
      queues: withClock(showQueues),
      running: withClock(running.show),
      failed: withClock(failed.load),
      queued: withClock(queued.show),
      waiting: withClock(waiting.show),
      workers: withClock(showWorkers),
    },
    (state) => {
      showConnection(typeof state === 'number' ? 'lost' : state)
      if (state !== 'live') streamed.resolve()
    },
  )
  // The panels appear together, because each has the height of its data.
  const content = h('div', { class: 'parts' }, skeleton(12))
  const load = async () => {
    setTimeout(streamed.resolve, MAX_WAIT_MS)
    await Promise.all([failed.load(), queues.load(), streamed.promise])
    content.replaceChildren(
      h('div', { class: 'columns' }, failed.node, running.node),
      queues.node,
      workers.node,
      h('div', { class: 'columns' }, queued.node, waiting.node),
    )
  }
  return [figures.node, { node: content, load }]
}

/** Makes a list of jobs, with a note if it is empty or cannot show all. `total` sets the number of all jobs. */
function makeList(title, nothing, row) {
  const list = h('ul', { class: 'jobs' })
  const link = h('a', { href: `/monitor/jobs?status=${title.toLowerCase()}` }, 'Show all')
  const rest = h('span', {})
  const empty = h('p', { class: 'soft' }, nothing)
  const more = h('p', { class: 'soft', hidden: true }, rest, link)
  let [shown, all] = [0, 0]
  const note = () => {
    empty.hidden = shown > 0
    more.hidden = shown === 0 || all <= shown
    setText(rest, `and ${formatCount(Math.max(0, all - shown))} more. `)
  }
  const show = (given) => {
    const items = given.slice(0, MAX_SHOWN)
    reconcile(list, items, ({ job_id }) => job_id, row)
    shown = items.length
    note()
  }
  const total = (n) => {
    all = n
    note()
  }
  return { node: panel(title, {}, list, empty, more), show, total }
}

function makeWorkers() {
  const { node, body, row } = table('Workers', [
    ['Worker', 'name'],
    ['State', ''],
    ['Running', 'number'],
    ['Busy threads', 'number'],
    ['Memory', 'number'],
    ['Uptime', 'number'],
    ['Queues', 'wide'],
    ['Action', 'act'],
  ])
  const empty = h('p', { class: 'bad' }, 'No worker is alive: jobs wait until one starts.')
  const more = h('p', { class: 'soft', hidden: true })
  const show = (items, alive) => {
    reconcile(body, items, ({ id }) => id, workerRow(row))
    empty.hidden = items.some(({ queue }) => queue === null)
    const unlisted = alive - items.filter((item) => item.alive).length
    more.hidden = unlisted <= 0
    setText(more, `and ${formatCount(unlisted)} more`)
  }
  return { node: panel('Workers', {}, scrollBox('Workers', node), more, empty), show }
}
