// What runs on a schedule: when, how the last run ended, and buttons to run it now, pause and resume it.

import { call } from './api.js'
import { forAdmins, h, keyed, panel, say, table } from './dom.js'
import { moment, since, until } from './format.js'
import { act, actOn, TONES } from './tables.js'

const PATH = '/api/v1/schedules'
const REFRESH_MS = 3000

export async function show(view, { account, showLink }) {
  document.title = 'Schedules · Millrace'
  if (account.role !== 'admin') return forAdmins(view, 'Schedules belong to the whole service.')
  const list = makeList(() => refresh())
  view.replaceChildren(h('h1', { class: 'hidden' }, 'Schedules'), list.node)
  list.take(await call('GET', PATH))
  showLink('live')

  // A slow answer must not undo what a later one has shown.
  let asked = 0
  const refresh = async () => {
    const mine = ++asked
    try {
      const items = await call('GET', PATH)
      if (mine === asked) list.take(items)
      showLink('live')
    } catch {
      showLink('lost')
    }
  }
  const refreshIfSeen = () => document.visibilityState === 'visible' && refresh()
  setInterval(refreshIfSeen, REFRESH_MS)
  document.addEventListener('visibilitychange', refreshIfSeen)
}

function makeList(refresh) {
  const { node, body, row } = table('Schedules', [
    ['Name', 'name'],
    ['Cron, in UTC', ''],
    ['Task', ''],
    ['Next run', ''],
    ['Last run', ''],
    ['Actions', ''],
  ])
  const make = scheduleRow(row, refresh)
  return { node: panel('Schedules', {}, node), take: (items) => keyed(body, items, ({ name }) => name, make) }
}

const scheduleRow = (row, refresh) => ({ name, cron, task }) => {
  const next = nextRun()
  const last = lastRun(name)
  const doing = (what, done) => async () => {
    await call('POST', `${PATH}/${name}/${what}`)
    await refresh()
    return `${done} ${name}`
  }
  const run = act('Run now', 'Starting…', `Run now: ${name}`, doing('run', 'Started'), true)
  const pause = actOn((isPaused) =>
    isPaused
      ? act('Resume', 'Resuming…', `Resume ${name}`, doing('resume', 'Resumed'), true)
      : act('Pause', 'Pausing…', `Pause ${name}`, doing('pause', 'Paused'), true),
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

/** How soon it is and when, or since when there is none. */
function nextRun() {
  const soon = h('span', { class: 'figure' })
  const exact = h('span', { class: 'figure soft' })
  const paused = h('span', { class: 'chip warn' }, 'paused')
  const update = ({ next_run_at, paused_at }) => {
    soon.hidden = next_run_at === null
    paused.hidden = paused_at === null
    until(soon, next_run_at)
    say(exact, paused_at === null ? moment(next_run_at) : `since ${moment(paused_at)}`)
  }
  return { node: h('span', { class: 'stack' }, soon, paused, exact), update }
}

/** How long ago it was, when, and the outcome of its job as a link to it, as long as that is kept. */
function lastRun(name) {
  const ago = h('span', { class: 'figure' })
  const link = h('a', {})
  const exact = h('span', { class: 'figure soft' })
  const update = ({ last_run_at, last_job }) => {
    since(ago, last_run_at, ' ago')
    say(exact, last_run_at === null ? '' : moment(last_run_at))
    link.hidden = last_job === null
    if (last_job === null) return
    const { job_id, status, error } = last_job
    link.href = `/monitor/jobs/${job_id}`
    link.className = `chip ${TONES[status]}`
    link.title = error?.detail ?? ''
    link.setAttribute('aria-label', `${status}: the last job of ${name}`)
    say(link, status)
  }
  return { node: h('span', { class: 'stack' }, h('span', { class: 'chips' }, ago, link), exact), update }
}
