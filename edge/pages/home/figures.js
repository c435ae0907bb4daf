// Figures of the home page with their last hour or day, as sparklines.

import { call, readList } from '../parts/api.js'
import { h, setText } from '../parts/dom.js'
import { formatCount, shortId, showAge } from '../parts/format.js'
import { jobPath } from '../parts/jobs.js'
import { sparkline } from '../parts/spark.js'
import { jobsPath } from '../monitor/bulk.js'

/** Makes tiles of `[name, note, href]` with a figure and, if `set` gets values, a sparkline. */
function sparkTiles(entries) {
  const parts = new Map()
  const tile = ([name, note, href]) => {
    const [figure, spark] = [h('a', { href }, '–'), sparkline()]
    parts.set(name, { figure, spark })
    return h('div', {}, h('dt', {}, name, h('small', {}, note)), h('dd', {}, figure, spark.node))
  }
  const node = h('dl', { class: 'tiles sparks' }, ...entries.map(tile))
  const set = (name, n, values, label) => {
    const { figure, spark } = parts.get(name)
    setText(figure, formatCount(n))
    spark.node.toggleAttribute('hidden', values === undefined)
    if (values !== undefined)
      spark.draw(
        [
          { values, kind: 'area' },
          { values, kind: 'line' },
        ],
        label,
      )
  }
  return { node, set }
}

const sumOf = (queues, name) => queues.reduce((sum, { history }) => history[name].map((n, i) => n + (sum[i] ?? 0)), []).slice(0, -1)
const total = (values) => values.reduce((a, b) => a + b, 0)

/** Makes the figures of the whole service, for admins. */
export function serviceFigures() {
  const tiles = sparkTiles([
    ['Finished', 'in the last hour', '/monitor/charts'],
    ['Failed', 'in the last hour', '/monitor/jobs?status=failed'],
    ['Queued', 'jobs', '/monitor/jobs?status=queued'],
    ['Running', 'jobs', '/monitor/jobs?status=running'],
  ])
  const load = async () => {
    const { queues } = await call('GET', '/api/v1/queues?window=1h')
    const [ended, failed] = [sumOf(queues, 'ended'), sumOf(queues, 'failed')]
    tiles.set('Finished', total(ended), ended, `${formatCount(total(ended))} jobs finished in the last hour`)
    tiles.set('Failed', total(failed), failed, `${formatCount(total(failed))} jobs failed in the last hour`)
    for (const [name, field] of [
      ['Queued', 'queued'],
      ['Running', 'running'],
    ])
      tiles.set(
        name,
        queues.reduce((sum, queue) => sum + queue[field], 0),
      )
  }
  return { node: tiles.node, load }
}

const SHOWN = 5
const STATES = [
  ['running', 'Running'],
  ['queued', 'Queued'],
  ['failed', 'Failed'],
]

/** Makes the account's own jobs: how many run, wait and failed, and the last ones of each. */
export function ownJobs() {
  const body = h('div', { class: 'columns thirds' })
  const node = h('div', { class: 'body' }, body)
  const load = async () => {
    const pages = await Promise.all(STATES.map(([status]) => readList(`/api/v1/jobs/search?status=${status}&limit=50`)))
    body.replaceChildren(...STATES.map(([status, name], i) => listOf(name, status, pages[i])))
  }
  return { node, load }
}

function listOf(name, status, { items, next }) {
  const count = `${formatCount(items.length)}${next === null ? '' : ' or more'}`
  const line = ({ job_id, name: task, label, error, finished_at, started_at, created_at }) => {
    const age = h('span', { class: 'figure soft' })
    showAge(age, finished_at ?? started_at ?? created_at, finished_at === null ? '' : ' ago')
    return h(
      'li',
      {},
      h('span', { class: 'line' }, h('a', { class: 'job', href: jobPath(job_id) }, task, h('code', {}, shortId(job_id))), h('span', { class: 'gap' }), age),
      h('span', { class: error === null ? 'soft clamp' : 'bad clamp' }, error === null ? label : error.detail),
    )
  }
  const all = items.length > SHOWN ? h('p', {}, h('a', { href: jobsPath({ status }) }, `All ${name.toLowerCase()} jobs`)) : null
  return h(
    'section',
    { class: 'panel', 'aria-label': `${name} jobs` },
    h('h2', {}, name, ' ', h('span', { class: 'soft' }, count)),
    items.length === 0 ? h('p', { class: 'soft' }, `No ${status} jobs.`) : h('ul', { class: 'jobs' }, ...items.slice(0, SHOWN).map(line)),
    all ?? '',
  )
}
