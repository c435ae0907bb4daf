// Page of the schedules, with their next run, the outcome of their last run, and buttons to run, pause and resume them.

import { call } from './api.js'
import { showAdminsOnly, h, reconcile, panel, setText, table } from './dom.js'
import { formatDateTime, showAge, showCountdown } from './format.js'
import { actionButton, buttonByState, TONES } from './tables.js'

const PATH = '/api/v1/schedules'
// The largest page. The built-in schedules come first.
const MAX_SHOWN = 100
const LIST_PATH = `${PATH}?limit=${MAX_SHOWN}`
const REFRESH_MS = 3000

export async function show(view, { account, showConnection }) {
  document.title = 'Schedules · Millrace'
  if (account.role !== 'admin') return showAdminsOnly(view, 'Schedules belong to the whole service.')
  const list = makeList(() => refresh())
  view.replaceChildren(h('h1', { class: 'hidden' }, 'Schedules'), list.node)
  list.show(await call('GET', LIST_PATH))
  showConnection('live')

  // A slow response must not overwrite a later one.
  let lastRequest = 0
  const refresh = async () => {
    const request = ++lastRequest
    try {
      const items = await call('GET', LIST_PATH)
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
    ['Times (UTC by default)', ''],
    ['Task', ''],
    ['Next run', ''],
    ['Last run', ''],
    ['Actions', ''],
  ])
  const make = scheduleRow(row, refresh)
  const note = h('p', { class: 'soft', hidden: true }, `Only the oldest ${MAX_SHOWN} schedules are shown.`)
  const show = (items) => {
    note.hidden = items.length < MAX_SHOWN
    reconcile(body, items, ({ id }) => id, make)
  }
  return { node: panel('Schedules', {}, node, note), show }
}

const scheduleRow = (row, refresh) => (schedule) => {
  const { id, name } = schedule
  const next = nextRun()
  const last = lastRun(name)
  const post = (action, done) => async () => {
    await call('POST', `${PATH}/${id}/${action}`)
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
  const label = h('strong', {}, name)
  const owner = h('span', { class: 'soft' }, schedule.owner_id === null ? '' : `Account ${schedule.owner_id}`)
  const times = h('code', {})
  const task = h('span', {})
  const node = row(h('span', { class: 'stack' }, label, owner), times, task, next.node, last.node, actions)
  const update = (item) => {
    setText(label, item.name)
    setText(times, describeTimes(item))
    setText(task, `${item.task_name} (${item.queue_type})`)
    next.update(item)
    last.update(item)
    pause.update(item.paused_at !== null)
  }
  return { node, update }
}

/** Returns the cron expression with its time zone, or the interval. */
const describeTimes = ({ cron, every_seconds, time_zone }) =>
  cron === null ? `every ${every_seconds} s` : time_zone === 'UTC' ? cron : `${cron} ${time_zone}`

/** Makes a cell with a countdown to the next run and its time. For a paused schedule it shows the time of the pause. */
function nextRun() {
  const countdown = h('span', { class: 'figure' })
  const exact = h('span', { class: 'figure soft' })
  const paused = h('span', { class: 'chip warn' }, 'paused')
  const update = ({ next_run_at, paused_at }) => {
    countdown.hidden = next_run_at === null
    paused.hidden = paused_at === null
    showCountdown(countdown, next_run_at)
    const time = paused_at ?? next_run_at
    setText(exact, time === null ? 'No time ahead' : `${paused_at === null ? '' : 'since '}${formatDateTime(time)}`)
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
