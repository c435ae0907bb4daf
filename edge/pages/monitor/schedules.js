// Page of schedules, with their next run, their last runs, and buttons to run, pause, change and delete them.

import { actionButton, button } from '../parts/actions.js'
import { call } from '../parts/api.js'
import { confirmAction } from '../parts/dialog.js'
import { h } from '../parts/dom.js'
import { formatDateTime, showAge, showCountdown } from '../parts/format.js'
import { jobPath, TONES } from '../parts/jobs.js'
import { list } from '../parts/list.js'
import { chip } from '../parts/table.js'
import { ownerName } from './owners.js'
import { addSchedule, editSchedule } from './schedule-forms.js'

const PATH = '/api/v1/schedules'
const REFRESH_MS = 5000
const SKIPS = {
  late: 'no worker was there in time',
  overlap: 'the last job had not ended',
  account: 'the account was inactive',
  task: 'the task did not accept the arguments',
  quota: 'too many jobs waited',
}

export function page({ account, showConnection }) {
  const isAdmin = account.role === 'admin'
  const schedules = list({
    title: 'Schedules',
    path: PATH,
    note: 'A schedule adds a job of a task at each of its times.',
    empty: 'You have no schedules.',
    onRead: () => showConnection('live'),
    emptyMore: () => [button('New schedule', () => addSchedule(schedules, account))],
    columns: [
      { name: 'Name', kind: 'name', show: (item) => nameCell(item, account, isAdmin) },
      { name: 'Times', show: timesCell },
      {
        name: 'Task',
        show: ({ task_name, queue_type }) => h('span', { class: 'stack' }, h('span', { class: 'bound' }, task_name), h('span', { class: 'soft' }, queue_type)),
      },
      { name: 'Next run', isFixed: true, show: nextRun },
      { name: 'Last runs', isFixed: true, show: lastRuns },
    ],
    actions: (item, api) => actionsOf(item, api, account),
    buttons: (api) => [button('New schedule', () => addSchedule(api, account), { kind: '' })],
  })
  keepFresh(schedules, showConnection)
  return [schedules]
}

/** Reads the schedules that are shown again, so that runs and changes of others appear. */
function keepFresh(schedules, showConnection) {
  const refresh = async () => {
    const shown = schedules.items()
    if (document.hidden || shown.length === 0 || document.querySelector('dialog[open]') !== null) return
    try {
      const items = await call('GET', `${PATH}?limit=100`)
      for (const item of items) {
        const before = schedules.items().find(({ id }) => id === item.id)
        if (before !== undefined && JSON.stringify(before) !== JSON.stringify(item)) schedules.replace(item)
      }
      showConnection('live')
    } catch {
      showConnection('lost')
    }
  }
  setInterval(refresh, REFRESH_MS)
  document.addEventListener('visibilitychange', refresh)
}

function nameCell({ name, owner_id, is_built_in }, account, isAdmin) {
  const owner = is_built_in ? 'built in' : isAdmin && owner_id !== null ? ownerName(owner_id, account) : null
  return h('span', { class: 'stack' }, h('strong', {}, name), owner && h('span', { class: 'soft' }, owner))
}

/** Shows the cron expression with its time zone, or the interval. */
function timesCell({ cron, every_seconds, time_zone, end_at }) {
  const times = cron === null ? h('span', {}, `every ${describeSeconds(every_seconds)}`) : h('code', {}, cron)
  return h(
    'span',
    { class: 'stack' },
    times,
    h('span', { class: 'soft' }, cron === null ? '' : time_zone, end_at === null ? '' : ` until ${formatDateTime(end_at)}`),
  )
}

function describeSeconds(seconds) {
  const [size, unit] = [
    [86_400, 'day'],
    [3600, 'hour'],
    [60, 'minute'],
    [1, 'second'],
  ].find(([length]) => seconds % length === 0)
  return seconds === size ? unit : `${seconds / size} ${unit}s`
}

function nextRun({ next_run_at, paused_at }) {
  if (paused_at !== null)
    return h('span', { class: 'stack' }, chip('paused', 'warn'), h('span', { class: 'soft figure' }, `since ${formatDateTime(paused_at)}`))
  if (next_run_at === null) return h('span', { class: 'soft' }, 'No time ahead')
  const countdown = h('span', { class: 'figure' })
  showCountdown(countdown, next_run_at)
  return h('span', { class: 'stack' }, countdown, h('span', { class: 'figure soft' }, formatDateTime(next_run_at)))
}

/** Shows the last runs as dots, each a link to its job, and the reason if the last time added none. */
function lastRuns({ name, recent_jobs, last_run_at, last_skip }) {
  const dots = recent_jobs.map(({ job_id, status, created_at }) => {
    const text = `${name}, ${formatDateTime(created_at)}: ${status}`
    return h('a', { class: `dot ${status} ${TONES[status]}`, href: jobPath(job_id), title: text, 'aria-label': text })
  })
  const age = h('span', { class: 'figure soft' })
  if (last_run_at !== null) showAge(age, last_run_at, ' ago')
  const isSkipped = last_skip !== null && (last_run_at === null || Date.parse(last_skip.at) > Date.parse(last_run_at))
  const skip = isSkipped
    ? h('span', { class: 'warning', title: formatDateTime(last_skip.at) }, `Skipped: ${SKIPS[last_skip.reason] ?? last_skip.reason}`)
    : null
  if (dots.length === 0 && last_run_at === null && skip === null) return h('span', { class: 'soft' }, 'never')
  return h('span', { class: 'stack' }, dots.length > 0 ? h('span', { class: 'dots' }, ...dots) : null, last_run_at === null ? null : age, skip)
}

function actionsOf(item, api, account) {
  const { id, name, is_built_in, paused_at } = item
  const change = (action, done) => async () => {
    await call('POST', `${PATH}/${id}/${action}`)
    api.replace(await call('GET', `${PATH}/${id}`))
    return `${done} ${name}`
  }
  const run = actionButton('Run now', 'Starting…', `Run now: ${name}`, change('run', 'Started'), true)
  const pause =
    paused_at === null
      ? actionButton('Pause', 'Pausing…', `Pause ${name}`, change('pause', 'Paused'), true)
      : actionButton('Resume', 'Resuming…', `Resume ${name}`, change('resume', 'Resumed'), true)
  const edit = button('Edit', () => editSchedule(item, api, account), { label: `Edit ${name}` })
  return is_built_in ? [run, pause] : [run, pause, edit, deleteButton(item, api)]
}

const deleteButton = (item, api) =>
  actionButton(
    'Delete',
    'Deleting…',
    `Delete ${item.name}`,
    async () => {
      if (!(await confirmAction(`Delete ${item.name}?`, 'It adds no more jobs. Its jobs and their results remain until they expire.', 'Delete schedule')))
        return null
      await call('DELETE', `${PATH}/${item.id}`)
      api.remove(item)
      return `Deleted ${item.name}`
    },
    true,
  )
