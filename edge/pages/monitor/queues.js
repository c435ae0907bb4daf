// The queues: how deep they are, how their jobs have ended, and what is asked of them.

import { call } from './api.js'
import { sparkline } from './chart.js'
import { announce, h, keyed, panel, say, table } from './dom.js'
import { count, rate, since, span } from './format.js'
import { act, actOn } from './tables.js'

// How often figures of the past are read, by window.
const READ_MS = { '10m': 2000, '1h': 5000, '24h': 30_000, '7d': 60_000 }
const WINDOWS = { '10m': '10 minutes', '1h': 'hour', '24h': 'day', '7d': 'week' }
const SECONDS = { '10m': 600, '1h': 3600, '24h': 86_400, '7d': 604_800 }

/** `onFigures` gets how many jobs ended in a second lately and how many failed, each time that these are read. */
export function makeQueues(onFigures) {
  const { node, body, row } = table('Queues', [
    ['Queue', 'name'],
    ['Waiting', 'number'],
    ['Oldest', 'number'],
    ['Running', 'number'],
    ['Limit', 'number'],
    ['Ended', 'chart'],
    ['Waited', 'number'],
    ['Ran', 'number'],
    ['Action', 'number'],
  ])
  const select = h('select', {}, ...Object.entries(WINDOWS).map(([value, text]) => h('option', { value }, text)))
  const period = h('label', { class: 'period' }, 'The last ', select)
  const fold = h('button', { class: 'plain', type: 'button', 'aria-expanded': 'false' })
  let [live, past, unfolded, timer] = [[], [], false, null]

  const draw = () => {
    const depth = new Map(live.map((item) => [item.queue, item]))
    const none = { queued: 0, running: 0, oldest_at: null }
    const items = past.map((item) => ({ ...item, ...(depth.get(item.queue) ?? none), window: select.value }))
    const idle = items.filter(isIdle)
    const shown = unfolded ? items : items.filter((item) => !isIdle(item))
    keyed(body, shown, ({ queue }) => queue, (item) => queueRow(row, item, read))
    fold.hidden = idle.length === 0
    say(fold, unfolded ? 'Hide idle queues' : `Show ${count(idle.length)} idle ${idle.length === 1 ? 'queue' : 'queues'}`)
    fold.setAttribute('aria-expanded', String(unfolded))
  }
  const read = async () => {
    clearTimeout(timer)
    if (!node.isConnected && past.length > 0) return
    const { value } = select
    try {
      if (!document.hidden || past.length === 0) {
        const { queues } = await call('GET', `/api/v1/queues?window=${value}`)
        if (value !== select.value) return
        past = queues
        draw()
        if (value === '10m') onFigures(lately(queues))
      }
    } catch (error) {
      // The stream tells of a lost connection and of who may not look.
      if (error.status === 403) return
    }
    clearTimeout(timer)
    timer = setTimeout(read, READ_MS[select.value])
  }
  select.addEventListener('change', read)
  fold.addEventListener('click', () => {
    unfolded = !unfolded
    draw()
  })
  read()
  return {
    node: panel('Queues', {}, period, node, fold),
    take: (items) => {
      live = items
      draw()
    },
  }
}

const isIdle = ({ queued, running, ended, paused_at, limit }) =>
  queued === 0 && running === 0 && ended === 0 && paused_at === null && limit === null

/** Of the last whole minute, and of all ten. */
function lately(queues) {
  const minute = queues.flatMap(({ history }) => history.ended.slice(-7, -1)).reduce((a, b) => a + b, 0)
  return { perSecond: minute / 60, failures: queues.reduce((sum, { failed }) => sum + failed, 0) }
}

function queueRow(row, { queue }, changed) {
  const [waits, oldest, runs, speed, waited, ran] = Array.from({ length: 6 }, () => h('span', { class: 'figure' }))
  const ended = sparkline()
  const paused = h('span', { class: 'chip warn', hidden: true }, 'paused')
  const action = actOn((isPaused) =>
    isPaused
      ? steer('Resume', 'Resuming…', 'resumed', `/api/v1/queues/${queue}/resume`)
      : steer('Pause', 'Pausing…', 'paused', `/api/v1/queues/${queue}/pause`),
  )
  const limit = limitField(queue, changed)
  const update = (now) => {
    say(waits, count(now.queued))
    since(oldest, now.oldest_at)
    say(runs, count(now.running))
    waits.classList.toggle('zero', now.queued === 0)
    runs.classList.toggle('zero', now.running === 0)
    limit.set(now.limit)
    // The last span is not over.
    const [all, failures] = [now.history.ended.slice(0, -1), now.history.failed.slice(0, -1)]
    ended.draw(
      [
        { values: all, kind: 'area' },
        { values: all, kind: 'line' },
        { values: failures, kind: 'marks' },
      ],
      `Jobs in ${queue} that ended in the last ${WINDOWS[now.window]}: ${count(now.ended)}, ${count(now.failed)} of them failed`,
    )
    say(speed, now.ended === 0 ? '' : rate(now.ended / SECONDS[now.window]))
    say(waited, timesOf(now.wait))
    say(ran, timesOf(now.run))
    const isPaused = now.paused_at !== null
    paused.hidden = !isPaused
    action.update(isPaused)
  }
  const steer = (text, busy, done, path) =>
    act(text, busy, `${text} ${queue}`, async () => {
      await call('POST', path)
      await changed()
      return `${queue} is ${done}`
    }, true)
  const cells = [waits, oldest, runs, limit.node, h('span', { class: 'trend' }, ended.node, speed), waited, ran, action.node]
  return { node: row(h('span', { class: 'chips' }, h('strong', {}, queue), paused), ...cells), update }
}

const timesOf = (times) => (times === null ? '–' : `${span(times.p50 * 1000)} · p95 ${span(times.p95 * 1000)}`)

/** How many jobs run at once; empty: no limit. */
function limitField(queue, changed) {
  const input = h('input', { class: 'limit', type: 'number', min: 1, max: 1_000_000, placeholder: 'none', 'aria-label': `Limit of ${queue}` })
  let kept = null
  input.addEventListener('change', async () => {
    if (!input.reportValidity()) return
    const limit = input.value === '' ? null : Number(input.value)
    try {
      await call('PATCH', `/api/v1/queues/${queue}`, { json: { limit } })
      announce(limit === null ? `${queue} has no limit` : `${queue} runs ${count(limit)} at once`)
      await changed()
    } catch (error) {
      announce(`Limit of ${queue}: ${error.message}`)
    }
  })
  return {
    node: input,
    set: (limit) => {
      if (limit === kept || document.activeElement === input) return
      kept = limit
      input.value = limit ?? ''
    },
  }
}
