// Page of the schedules, with their next run, the outcome of their last run, and buttons to run, pause and resume them.

import { call } from './api.js'
import { showAdminsOnly, h, reconcile, panel, setText, table } from './dom.js'
import { formatDateTime, showAge, showCountdown } from './format.js'
import { actionButton, buttonByState, TONES } from './tables.js'

const PATH = '/api/v1/schedules'
const REFRESH_MS = 3000

export async function show(view, { account, showConnection }) {
  document.title = 'Schedules · Millrace'
  if (account.role !== 'admin') return showAdminsOnly(view, 'Schedules belong to the whole service.')
  const list = makeList(() => refresh())
  view.replaceChildren(h('h1', { class: 'hidden' }, 'Schedules'), list.node)
  list.show(await call('GET', PATH))
  showConnection('live')

  // A slow response must not overwrite a later one.
  let lastRequest = 0
  const refresh = async () => {
    const request = ++lastRequest
    try {
      const items = await call('GET', PATH)
      if (request === lastRequest) list.show(items)
      showConnection('live')
    } catch {
      showConnection('lost')
    }
  }
  const refreshIfVisible = () => document.visibilityState === 'visible' && refresh()
  setInterval(refreshIfVisible, REFRESH_MS)
  document.addEventListener('visibilitychange', refreshIfVisible)
}

function makeList(refresh) {
  const { node, body, row } = table('Schedules', [
    ['Name', 'name'],
    ['Cron (UTC)', ''],
    ['Task', ''],
    ['Next run', ''],
    ['Last run', ''],
    ['Actions', ''],
  ])
  const make = scheduleRow(row, refresh)
  return { node: panel('Schedules', {}, node), show: (items) => reconcile(body, items, ({ name }) => name, make) }
}

const scheduleRow = (row, refresh) => ({ name, cron, task }) => {
  const next = nextRun()
  const last = lastRun(name)
  const post = (action, done) => async () => {
    await call('POST', `${PATH}/${name}/${action}`)
    await refresh()
    return `${done} ${name}`
  }
  const run = actionButton('Run now', 'Starting…', `Run now: ${name}`, post('run', 'Started'), true)
  const pause = buttonByState((isPaused) =>
    isPaused
      ? actionButton('Resume', 'Resuming…', `Resume ${name}`, post('resume', 'Resumed'), true)
      : actionButton('Pause', 'Pausing…', `Pause ${name}`, post('pause', 'Paused'), true),
  )
  const actions = h('span', { class: 'actions' }, run, pause.node)
  const node = row(h('strong', {}, name), h('code', {}, cron), task, next.node, last.node, actions)
  const update = (item) => {
    next.update(item)
    last.update(item)
    pause.update(item.paused_at !== null)
  }
  return { node, update }
}

/** Makes a cell with a countdown to the next run and its time. For a paused schedule it shows the time of the pause. */
function nextRun() {
  const countdown = h('span', { class: 'figure' })
  const exact = h('span', { class: 'figure soft' })
  const paused = h('span', { class: 'chip warn' }, 'paused')
  const update = ({ next_run_at, paused_at }) => {
    countdown.hidden = next_run_at === null
    paused.hidden = paused_at === null
    showCountdown(countdown, next_run_at)
    setText(exact, paused_at === null ? formatDateTime(next_run_at) : `since ${formatDateTime(paused_at)}`)
  }
  return { node: h('span', { class: 'stack' }, countdown, paused, exact), update }
}

/** Makes a cell with the age and time of the last run. The status of its job is a link until the job is pruned. */
function lastRun(name) {
  const ago = h('span', { class: 'figure' })
  const link = h('a', {})
  const exact = h('span', { class: 'figure soft' })
  const update = ({ last_run_at, last_job }) => {
    showAge(ago, last_run_at, ' ago')
    setText(exact, last_run_at === null ? '' : formatDateTime(last_run_at))
    link.hidden = last_job === null
    if (last_job === null) return
    const { job_id, status, error } = last_job
    link.href = `/monitor/jobs/${job_id}`
    link.className = `chip ${TONES[status]}`
    link.title = error?.detail ?? ''
    link.setAttribute('aria-label', `Last job of ${name}: ${status}`)
    setText(link, status)
  }
  return { node: h('span', { class: 'stack' }, h('span', { class: 'chips' }, ago, link), exact), update }
}
