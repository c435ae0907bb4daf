// Page of jobs: all of them for admins, the account's own for others. A second view groups failures by task.

import { button, menu } from '../parts/actions.js'
import { call } from '../parts/api.js'
import { openDialog } from '../parts/dialog.js'
import { h } from '../parts/dom.js'
import { formatCount, formatDateTime, formatDuration, formatShort, now, shortId } from '../parts/format.js'
import { cancelButton, FINAL_STATUSES, jobPath, retryButton, statusChip } from '../parts/jobs.js'
import { list } from '../parts/list.js'
import { subscribe } from '../parts/streams.js'
import { clamped } from '../parts/table.js'
import { bulkButton, bulkOfSelected } from './bulk.js'
import { openNewJob } from './enqueue.js'
import { makeFailureGroups } from './failures.js'
import { errorCodes, queueNames, taskNames } from './known.js'
import { listHash } from './list-hash.js'

const STATES = ['waiting', 'queued', 'running', 'done', 'failed', 'cancelled']
const FLUSH_MS = 500
const ORDERS = [
  ['', 'last finished or newest first'],
  ['-created_at', 'newest first'],
  ['created_at', 'oldest first'],
  ['-ran', 'longest run first'],
  ['-waited', 'longest wait first'],
  ['-attempts', 'most attempts first'],
]

export function page({ account, showConnection }) {
  const params = new URLSearchParams(location.search)
  const views = viewTabs(params.get('view'))
  if (params.get('view') === 'failures') return [views, makeFailureGroups()]
  const jobs = jobList(account)
  // The stream of an admin has the jobs of all accounts, which may be thousands a second.
  if (account.role !== 'admin') follow(jobs, showConnection)
  return [views, jobs]
}

/** Shows the new states of listed jobs. */
function follow(jobs, showConnection) {
  const changed = new Map()
  let timer = null
  const flush = () => {
    timer = null
    for (const item of jobs.items()) {
      const frame = changed.get(item.job_id)
      const at = new Date(now()).toISOString()
      if (frame === undefined || item.status === frame.status) continue
      const { status, label, error = null } = frame
      jobs.replace({
        ...item,
        status,
        label,
        error,
        started_at: item.started_at ?? (status === 'running' ? at : null),
        finished_at: FINAL_STATUSES.has(status) ? at : null,
      })
    }
    changed.clear()
  }
  const status = (frame) => {
    changed.set(frame.job_id, frame)
    timer ??= setTimeout(flush, FLUSH_MS)
  }
  subscribe('jobs', { status }, (state) => showConnection(typeof state === 'number' ? 'none' : state))
}

/** Makes the links to the views of this page. */
function viewTabs(view) {
  const link = (href, text, isCurrent) => h('a', { href, 'aria-current': isCurrent ? 'page' : null }, text)
  return h(
    'nav',
    { class: 'tabs', 'aria-label': 'Views' },
    link('/monitor/jobs', 'Each job', view !== 'failures'),
    link('/monitor/jobs?view=failures', 'Failures by task', view === 'failures'),
  )
}

function jobList(account) {
  const isAdmin = account.role === 'admin'
  return list({
    title: 'Jobs',
    path: '/api/v1/jobs/search',
    key: ({ job_id }) => job_id,
    nameOf: ({ name, job_id }) => `${name} ${shortId(job_id)}`,
    note: isAdmin ? null : 'The jobs of your account, such as extractions, messages, exports and tasks.',
    empty: 'No jobs yet.',
    emptyMore: () => [button('New job', () => openNewJob(account))],
    filters: filtersFor(account),
    orders: ORDERS,
    columns: columnsFor(isAdmin),
    actions: actionOf,
    bulk: [
      ['Retry', bulkOfSelected('retry')],
      ['Cancel', bulkOfSelected('cancel')],
      ['Delete', bulkOfSelected('delete')],
    ],
    buttons: (jobs) => [button('New job', () => openNewJob(account), { kind: '' }), button('Open by ID', openById), bulkMenu(jobs)],
  })
}

function filtersFor(account) {
  const owner = { name: 'owner_id', label: 'Owner', suggestions: readOwners, isMore: true }
  return [
    { name: 'status', label: 'State', options: STATES },
    { name: 'queue', label: 'Queue', suggestions: () => queueNames(account) },
    { name: 'task', label: 'Task', suggestions: taskNames },
    { name: 'code', label: 'Error code', suggestions: errorCodes },
    { name: 'search', label: 'Label or error text' },
    ...(account.role === 'admin' ? [owner] : []),
    { name: 'batch', label: 'Batch ID', isMore: true },
    { name: 'key', label: 'Key', isMore: true },
    { name: 'request_id', label: 'Request ID', isMore: true },
    { name: 'from', label: 'Created from', type: 'datetime-local', isMore: true },
    { name: 'to', label: 'Created before', type: 'datetime-local', isMore: true },
  ]
}

/** Returns the numbers of accounts with their emails. */
const readOwners = async () => (await call('GET', '/api/v1/auth/users?limit=100')).map(({ id, email }) => [id, email])

const columnsFor = (isAdmin) => [
  { name: 'Job', kind: 'name', show: ({ job_id, name }) => h('a', { class: 'job', href: jobPath(job_id) + listHash() }, name, ' ', h('code', {}, shortId(job_id))) },
  { name: 'State', show: ({ status }) => statusChip(status) },
  { name: 'Queue', show: ({ queue }) => h('span', { class: 'bound' }, queue) },
  {
    name: 'Created',
    kind: 'number time',
    show: ({ created_at }) => h('time', { datetime: created_at, title: formatDateTime(created_at) }, formatShort(created_at)),
  },
  { name: 'Wait time', kind: 'number', show: ({ due_at, created_at, started_at }) => durationBetween(due_at ?? created_at, started_at) },
  { name: 'Run time', kind: 'number', show: ({ started_at, finished_at }) => durationBetween(started_at, finished_at) },
  ...(isAdmin ? [{ name: 'Owner', kind: 'owner', show: ({ owner_email }) => owner_email }] : []),
  {
    name: 'Label or error',
    kind: 'wide',
    show: ({ label, error }) => (error === null ? clamped(label) : h('span', { class: 'bad' }, clamped([error.code, error.detail].filter(Boolean).join(': ')))),
  },
  { name: 'Attempts', kind: 'number', isHidden: true, show: ({ attempts }) => formatCount(attempts) },
  { name: 'Finished', kind: 'number', isHidden: true, show: ({ finished_at }) => finished_at && formatDateTime(finished_at) },
  { name: 'Kept until', kind: 'number', isHidden: true, show: ({ expires_at }) => expires_at && formatDateTime(expires_at) },
  { name: 'Batch', isHidden: true, show: ({ batch_id }) => batch_id && h('a', { href: jobPath(batch_id) }, h('code', {}, shortId(batch_id))) },
  { name: 'Key', isHidden: true, show: ({ key }) => key && h('code', { class: 'bound' }, key) },
  { name: 'Request', isHidden: true, show: ({ request_id }) => request_id && h('code', { class: 'bound' }, request_id) },
]

const durationBetween = (from, to) => (from === null || to === null ? null : formatDuration(Date.parse(to) - Date.parse(from)))

function actionOf(job, jobs) {
  if (job.status === 'failed' && job.retried_by === null)
    return retryButton(job.job_id, job.name, (again) => jobs.replace({ ...job, retried_by: again.job_id }))
  if (!FINAL_STATUSES.has(job.status)) return cancelButton(job.job_id, job.name)
  return job.retried_by === null ? null : h('a', { href: jobPath(job.retried_by), 'aria-label': `Retried: ${job.name} ${shortId(job.job_id)}` }, 'Retried')
}

/** Makes the menu of actions on all jobs that match the filters. */
const bulkMenu = (jobs) =>
  menu(
    'All that match',
    bulkButton('retry', jobs.filter, 'Retry all failed jobs found'),
    bulkButton('cancel', jobs.filter, 'Cancel all queued and running jobs found'),
    bulkButton('delete', jobs.filter, 'Delete all finished jobs found'),
  )

function openById() {
  const input = h('input', { name: 'id', autocomplete: 'off', required: true, spellcheck: 'false' })
  const open = (event) => {
    event.preventDefault()
    location.assign(jobPath(input.value.trim()))
  }
  openDialog(
    'Open a job',
    h(
      'form',
      { class: 'form', onsubmit: open },
      h('label', {}, 'Job or batch ID', input),
      h('div', { class: 'actions' }, h('button', { type: 'submit' }, 'Open')),
    ),
  )
  input.focus()
}
