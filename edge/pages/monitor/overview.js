// The monitor itself: one stream delivers all of its data.

import { follow } from './api.js'
import { forAdmins, h, keyed, panel, say, table, tiles } from './dom.js'
import { makeFailures } from './failures.js'
import { count, rate, setClock } from './format.js'
import { makeQueues } from './queues.js'
import { runningRow, waitingRow, workerRow } from './tables.js'

export function show(view, { showLink }) {
  document.title = 'Monitor · Millrace'
  const figures = tiles([
    ['Waiting', 'jobs'],
    ['Running', 'jobs'],
    ['Ended', 'in the last minute'],
    ['Failed', 'in the last ten minutes'],
    ['Workers', 'alive'],
  ])
  const queues = makeQueues(({ perSecond, failures }) => {
    figures.set('Ended', rate(perSecond))
    figures.set('Failed', count(failures))
  })
  const running = makeList('Running', 'No jobs are running.', runningRow)
  const failed = makeFailures()
  const waiting = makeList('Waiting', 'No jobs are waiting.', waitingRow)
  const workers = makeWorkers()
  view.replaceChildren(
    h('h1', { class: 'hidden' }, 'Monitor'),
    figures.node,
    queues.node,
    h('div', { class: 'columns' }, running.node, failed.node),
    workers.node,
    waiting.node,
  )

  const part = (take) => ({ at, ...data }) => {
    setClock(at)
    take(data.items, data)
  }
  follow(
    '/api/v1/jobs/overview/events',
    {
      queues: part((items) => {
        queues.take(items)
        figures.set('Waiting', count(sum(items, 'queued')))
        figures.set('Running', count(sum(items, 'running')))
        running.total(sum(items, 'running'))
        waiting.total(sum(items, 'queued'))
      }),
      running: part(running.take),
      failed: part(failed.read),
      waiting: part(waiting.take),
      workers: part((items) => {
        workers.take(items)
        figures.set('Workers', count(items.filter(({ alive }) => alive).length))
      }),
    },
    (state) => {
      if (state === 403) {
        showLink('none')
        return forAdmins(view, 'The monitor shows everybody’s jobs.')
      }
      showLink(state === 'live' || state === 'lost' ? state : 'lost')
    },
  )
}

const sum = (items, field) => items.reduce((total, item) => total + item[field], 0)

/** A list of jobs that says when it is empty, or how many more there are. */
function makeList(title, nothing, row) {
  const list = h('ul', { class: 'jobs' })
  const empty = h('p', { class: 'soft' }, nothing)
  const more = h('p', { class: 'soft', hidden: true })
  let [shown, all] = [0, 0]
  const note = () => {
    empty.hidden = shown > 0
    more.hidden = shown === 0 || all <= shown
    say(more, `and ${count(Math.max(0, all - shown))} more`)
  }
  const take = (items) => {
    keyed(list, items, ({ job_id }) => job_id, row)
    shown = items.length
    note()
  }
  const total = (n) => {
    all = n
    note()
  }
  return { node: panel(title, {}, list, empty, more), take, total }
}

function makeWorkers() {
  const { node, body, row } = table('Workers', [
    ['Worker', 'name'],
    ['Lease', ''],
    ['Running', 'number'],
    ['Threads, busy', 'number'],
    ['Memory', 'number'],
    ['Up', 'number'],
    ['Queues', 'wide'],
    ['Action', 'number'],
  ])
  const empty = h('p', { class: 'bad' }, 'No worker is alive: jobs wait until one starts.')
  const take = (items) => {
    keyed(body, items, ({ id }) => id, workerRow(row))
    empty.hidden = items.length > 0
  }
  return { node: panel('Workers', {}, node, empty), take }
}
