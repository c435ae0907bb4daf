// Panel of the queues, with their depth, throughput, wait and run times, and the controls of admins.

import { actionButton, buttonByState } from '../parts/actions.js'
import { call } from '../parts/api.js'
import { announce, h, panel, reconcile, setText } from '../parts/dom.js'
import { formatCount, formatDuration, formatRate, showAge } from '../parts/format.js'
import { sparkline } from '../parts/spark.js'
import { failure } from '../parts/states.js'
import { scrollBox, table } from '../parts/table.js'
import { jobsPath } from './bulk.js'

// Milliseconds between two reads of past figures, by window.
const READ_MS = { '10m': 2000, '1h': 5000, '24h': 30_000, '7d': 60_000 }
const WINDOWS = { '10m': '10 minutes', '1h': 'hour', '24h': 'day', '7d': 'week' }
const SECONDS = { '10m': 600, '1h': 3600, '24h': 86_400, '7d': 604_800 }

/**
 * Makes the panel. After each read of the shortest window, `onFigures` receives the finished jobs per second and the
 * failures.
 */
export function makeQueues(onFigures) {
  const { node, body, row } = table('Queues', [
    ['Queue', 'name'],
    ['Queued', 'number'],
    ['Waiting', 'number'],
    ['Running', 'number'],
    ['Limit', 'number'],
    ['Finished', 'chart'],
    ['Wait time', 'number'],
    ['Run time', 'number'],
    ['Action', 'act'],
  ])
  const content = scrollBox('Queues', node)
  const select = h('select', {}, ...Object.entries(WINDOWS).map(([value, text]) => h('option', { value }, text)))
  const period = h('label', { class: 'inline' }, 'The last ', select)
  const foldButton = h('button', { class: 'plain', type: 'button', 'aria-expanded': 'false', hidden: true })
  let [depths, figures, showsIdle, timer, hasShown] = [[], [], false, null, false]

  const draw = () => {
    const depth = new Map(depths.map((item) => [item.queue, item]))
    const none = { queued: 0, running: 0, waiting: 0, oldest_at: null }
    const items = figures.map((item) => ({ ...item, ...(depth.get(item.queue) ?? none), window: select.value }))
    const idle = items.filter(isIdle)
    const shown = showsIdle ? items : items.filter((item) => !isIdle(item))
    reconcile(
      body,
      shown,
      ({ queue }) => queue,
      (item) => queueRow(row, item, read),
    )
    foldButton.hidden = idle.length === 0
    setText(foldButton, showsIdle ? 'Hide idle queues' : `Show ${formatCount(idle.length)} idle ${idle.length === 1 ? 'queue' : 'queues'}`)
    foldButton.setAttribute('aria-expanded', String(showsIdle))
  }
  const read = async () => {
    clearTimeout(timer)
    if (!node.isConnected && hasShown) return
    hasShown = node.isConnected
    const { value } = select
    try {
      if (!document.hidden || figures.length === 0) {
        const { queues } = await call('GET', `/api/v1/queues?window=${value}`)
        if (value !== select.value) return
        figures = queues
        if (content.firstElementChild !== node) content.replaceChildren(node)
        draw()
        if (value === '10m') onFigures(recentFigures(queues))
      }
    } catch (error) {
      // Later errors are not shown, because the monitor's stream already reports connection problems.
      if (figures.length === 0) content.replaceChildren(failure(error, read))
    }
    clearTimeout(timer)
    timer = setTimeout(read, READ_MS[select.value])
  }
  select.addEventListener('change', read)
  foldButton.addEventListener('click', () => {
    showsIdle = !showsIdle
    draw()
  })
  return {
    node: panel('Queues', { tools: [period] }, content, foldButton),
    load: read,
    show: (items) => {
      depths = items
      draw()
    },
  }
}

const isIdle = ({ queued, running, waiting, ended, paused_at, limit }) =>
  queued === 0 && running === 0 && waiting === 0 && ended === 0 && paused_at === null && limit === null

/** Returns the throughput of the last complete minute and the failures of all ten minutes. */
function recentFigures(queues) {
  const minute = queues.flatMap(({ history }) => history.ended.slice(-7, -1)).reduce((a, b) => a + b, 0)
  return { perSecond: minute / 60, failures: queues.reduce((sum, { failed }) => sum + failed, 0) }
}

function queueRow(row, { queue }, changed) {
  const [waits, oldest, held, runs, speed] = Array.from({ length: 5 }, () => h('span', { class: 'figure' }))
  const [waited, ran] = [timesCell(), timesCell()]
  const ended = sparkline()
  const paused = h('span', { class: 'chip warn', hidden: true }, 'paused')
  const action = buttonByState((isPaused) =>
    isPaused
      ? controlButton('Resume', 'Resuming…', 'resumed', `/api/v1/queues/${queue}/resume`)
      : controlButton('Pause', 'Pausing…', 'paused', `/api/v1/queues/${queue}/pause`),
  )
  const limit = limitField(queue, changed)
  oldest.classList.add('soft')
  const update = (now) => {
    setText(waits, formatCount(now.queued))
    oldest.hidden = now.oldest_at === null
    showAge(oldest, now.oldest_at)
    oldest.title = now.oldest_at === null ? '' : 'Age of the oldest queued job'
    setText(held, formatCount(now.waiting))
    setText(runs, formatCount(now.running))
    waits.classList.toggle('zero', now.queued === 0)
    held.classList.toggle('zero', now.waiting === 0)
    runs.classList.toggle('zero', now.running === 0)
    limit.set(now.limit)
    drawEnded(ended, now)
    setText(speed, now.ended === 0 ? '' : formatRate(now.ended / SECONDS[now.window]))
    waited.update(now.wait)
    ran.update(now.run)
    const isPaused = now.paused_at !== null
    paused.hidden = !isPaused
    action.update(isPaused)
  }
  const controlButton = (text, busy, done, path) =>
    actionButton(
      text,
      busy,
      `${text} ${queue}`,
      async () => {
        await call('POST', path)
        await changed()
        return `${queue} is ${done}`
      },
      true,
    )
  const depth = h('span', { class: 'stack end' }, waits, oldest)
  const cells = [depth, held, runs, limit.node, h('span', { class: 'trend' }, ended.node, speed), waited.node, ran.node, action.node]
  return { node: row(h('span', { class: 'chips' }, h('a', { class: 'job bound', href: jobsPath({ queue }) }, queue), paused), ...cells), update }
}

function drawEnded(chart, { queue, window, history, ended, failed }) {
  // Omits the last interval, which is still incomplete.
  const [all, failures] = [history.ended.slice(0, -1), history.failed.slice(0, -1)]
  chart.draw(
    [
      { values: all, kind: 'area' },
      { values: all, kind: 'line' },
      { values: failures, kind: 'marks' },
    ],
    `Jobs of ${queue} that finished in the last ${WINDOWS[window]}: ${formatCount(ended)}, ${formatCount(failed)} of them failed`,
  )
}

/** Makes a cell with the median above the 95th percentile. */
function timesCell() {
  const [median, high] = [h('span', { class: 'figure' }), h('span', { class: 'figure soft' })]
  const update = (times) => {
    setText(median, times === null ? '–' : formatDuration(times.p50 * 1000))
    setText(high, times === null ? '' : `p95 ${formatDuration(times.p95 * 1000)}`)
  }
  return { node: h('span', { class: 'stack end', title: 'Median, and the time that 95 of 100 jobs stay below' }, median, high), update }
}

/** Makes the field for the maximum number of running jobs of a queue; empty means no limit. */
function limitField(queue, changed) {
  const input = h('input', { class: 'limit', type: 'number', min: 1, max: 1_000_000, placeholder: 'none', 'aria-label': `Limit of ${queue}` })
  let savedLimit = null
  input.addEventListener('change', async () => {
    if (!input.reportValidity()) return
    const limit = input.value === '' ? null : Number(input.value)
    try {
      await call('PATCH', `/api/v1/queues/${queue}`, { json: { limit } })
      announce(limit === null ? `${queue} has no limit` : `${queue} runs at most ${formatCount(limit)} ${limit === 1 ? 'job' : 'jobs'}`)
      await changed()
    } catch (error) {
      announce(`Limit of ${queue}: ${error.message}`, { isBad: true })
    }
  })
  return {
    node: input,
    set: (limit) => {
      if (limit === savedLimit || document.activeElement === input) return
      savedLimit = limit
      input.value = limit ?? ''
    },
  }
}
