// The monitor itself: one stream delivers all of its data.

import { follow } from './api.js'
import { sparkline } from './chart.js'
import { forAdmins, h, keyed, panel, say, table, tiles } from './dom.js'
import { count, now, rate, setClock, since, span } from './format.js'
import { failedRow, runningRow, waitingRow, workerRow } from './tables.js'

const POINTS = 120
const REDRAW_MS = 1000

export function show(view, { showLink }) {
  document.title = 'Monitor · Millrace'
  const figures = tiles([
    ['Waiting', 'jobs'],
    ['Running', 'jobs'],
    ['Ended', 'in the last minute'],
    ['Failed', 'in the last ten minutes'],
    ['Workers', 'alive'],
  ])
  const queues = makeQueues()
  const running = makeList('Running', 'No jobs are running.', runningRow)
  const failed = makeList('Failed', 'No jobs have failed.', failedRow)
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
      ended: part((items, { bucket_seconds }) => queues.ended(items, bucket_seconds)),
      running: part(running.take),
      failed: part(failed.take),
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
  // Time passes even when nothing happens.
  setInterval(() => {
    const { perSecond, failures } = queues.draw()
    figures.set('Ended', rate(perSecond))
    figures.set('Failed', count(failures))
  }, REDRAW_MS)
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
    ['Threads', 'number'],
    ['Memory', 'number'],
    ['Up', 'number'],
    ['Queues', 'wide'],
  ])
  const empty = h('p', { class: 'bad' }, 'No worker is alive: jobs wait until one starts.')
  const take = (items) => {
    keyed(body, items, ({ id }) => id, workerRow(row))
    empty.hidden = items.length > 0
  }
  return { node: panel('Workers', {}, node, empty), take }
}

function makeQueues() {
  const { node, body, row } = table('Queues', [
    ['Queue', 'name'],
    ['Waiting', 'number'],
    ['Oldest', 'number'],
    ['Running', 'number'],
    ['Ended, ten minutes', 'chart'],
    ['From creation to end', 'chart'],
  ])
  // Queue -> time span -> what ended in it.
  const history = new Map()
  let seconds = 5
  let known = []

  const make = ({ queue }) => {
    const [waits, oldest, runs, speed, latency] = Array.from({ length: 5 }, () => h('span', { class: 'figure' }))
    const [ended, took] = [sparkline(), sparkline()]
    const update = (now) => {
      say(waits, count(now.queued))
      since(oldest, now.oldest_at)
      say(runs, count(now.running))
      waits.classList.toggle('zero', now.queued === 0)
      runs.classList.toggle('zero', now.running === 0)
    }
    const draw = ({ counts, failures, p50, p95, perSecond, last }) => {
      ended.draw(
        [
          { values: counts, kind: 'area' },
          { values: counts, kind: 'line' },
          { values: failures, kind: 'marks' },
        ],
        `Jobs in ${queue} that ended in the last ten minutes`,
      )
      took.draw(
        [
          { values: p95, kind: 'faint' },
          { values: p50, kind: 'line' },
        ],
        `Duration of jobs in ${queue}: median and 95th percentile`,
      )
      say(speed, perSecond === 0 ? '' : rate(perSecond))
      say(latency, last === null ? '' : `${span(last.p50)} · p95 ${span(last.p95)}`)
    }
    const cells = [waits, oldest, runs, h('span', { class: 'trend' }, ended.node, speed), h('span', { class: 'trend' }, took.node, latency)]
    return { node: row(h('strong', {}, queue), ...cells), update, draw }
  }
  const rows = new Map()
  const draw = () => {
    let [perSecond, failures] = [0, 0]
    // The current time span is not over yet: only complete ones are shown.
    const newest = Math.floor(now() / 1000 / seconds) - 1
    for (const { queue } of known) {
      const drawn = seriesOf(history.get(queue) ?? new Map(), newest, seconds)
      rows.get(queue).draw(drawn)
      perSecond += drawn.perSecond
      failures += drawn.failures.reduce((total, n) => total + n, 0)
    }
    return { perSecond, failures }
  }
  return {
    node: panel('Queues', {}, node),
    take: (items) => {
      known = items
      keyed(body, items, ({ queue }) => queue, (item) => {
        const made = make(item)
        rows.set(item.queue, made)
        return made
      })
    },
    ended: (items, bucketSeconds) => {
      seconds = bucketSeconds
      for (const [queue, bucket, ...figures] of items) {
        const spans = history.get(queue) ?? new Map()
        history.set(queue, spans.set(bucket, figures))
      }
    },
    draw,
  }
}

/** What ended, as lines with one point per time span. Spans that have become too old are dropped. */
function seriesOf(spans, newest, seconds) {
  const oldest = newest - POINTS + 1
  for (const bucket of spans.keys()) if (bucket < oldest) spans.delete(bucket)
  const all = Array.from({ length: POINTS }, (_, i) => spans.get(oldest + i))
  const minute = 60 / seconds
  const recent = all.slice(-minute)
  const last = recent.findLast((figures) => figures !== undefined)
  return {
    counts: all.map((figures) => (figures?.[0] ?? 0) / seconds),
    failures: all.map((figures) => figures?.[1] ?? 0),
    p50: all.map((figures) => figures?.[2] ?? null),
    p95: all.map((figures) => figures?.[3] ?? null),
    perSecond: recent.reduce((total, figures) => total + (figures?.[0] ?? 0), 0) / 60,
    last: last === undefined ? null : { p50: last[2], p95: last[3] },
  }
}
