// Page of all jobs, with a search and bulk actions on its results.

import { call } from './api.js'
import { bulkButton } from './bulk.js'
import { showAdminsOnly, focusNode, h, panel, setText, table } from './dom.js'
import { shortId, formatCount, formatDateTime, formatDuration } from './format.js'
import { cancelButton, retryButton, TONES } from './tables.js'

const STATES = ['waiting', 'queued', 'running', 'done', 'failed', 'cancelled']
const ORDERS = [
  ['', 'last finished or newest first'],
  ['-created_at', 'newest first'],
  ['created_at', 'oldest first'],
  ['-ran', 'longest run first'],
  ['-waited', 'longest wait first'],
  ['-attempts', 'most attempts first'],
]
const FIELDS = ['status', 'queue', 'task', 'code', 'owner_id', 'request_id', 'search', 'from', 'to']

export async function show(view) {
  document.title = 'Jobs · Millrace'
  const list = makeList()
  const form = makeForm((filter) => list.find(filter))
  view.replaceChildren(h('h1', { class: 'hidden' }, 'Jobs'), panel('Find jobs', {}, form.node), list.node)
  try {
    await list.find(form.filter())
  } catch (error) {
    if (error.status !== 403) throw error
    showAdminsOnly(view, 'This page shows the jobs of all accounts.')
  }
}

/** Makes the search form, whose values are also in the URL. */
function makeForm(find) {
  const params = new URLSearchParams(location.search)
  const inputs = new Map()
  const field = (name, text, props) => {
    const input = h('input', { name, value: params.get(name) ?? undefined, autocomplete: 'off', ...props })
    inputs.set(name, input)
    return h('label', {}, text, input)
  }
  const status = h('select', { name: 'status' }, h('option', { value: '' }, 'any'), ...STATES.map((state) => h('option', { value: state, selected: state === params.get('status') }, state)))
  inputs.set('status', status)
  const id = h('input', { name: 'id', autocomplete: 'off', placeholder: 'opens the job page' })
  const problem = h('p', { class: 'bad', role: 'alert' })
  const filter = () =>
    Object.fromEntries(
      FIELDS.map((name) => [name, inputs.get(name).value.trim()])
        .filter(([, value]) => value !== '')
        .map(([name, value]) => [name, name === 'from' || name === 'to' ? new Date(value).toISOString() : value]),
    )
  const send = async (event) => {
    event.preventDefault()
    if (id.value.trim() !== '') return location.assign(`/monitor/jobs/${encodeURIComponent(id.value.trim())}`)
    const shown = new URLSearchParams([...inputs].map(([name, { value }]) => [name, value.trim()]).filter(([, value]) => value !== ''))
    history.replaceState(null, '', `/monitor/jobs${shown.size === 0 ? '' : `?${shown}`}`)
    problem.textContent = ''
    try {
      await find(filter())
    } catch (error) {
      problem.textContent = error.message
    }
  }
  const node = h(
    'form',
    { class: 'filter', onsubmit: send },
    h('label', {}, 'State', status),
    field('queue', 'Queue'),
    field('task', 'Task'),
    field('code', 'Error code'),
    field('search', 'Label or error text'),
    field('owner_id', 'Owner', { type: 'number', min: 1 }),
    field('request_id', 'Request ID'),
    field('from', 'Created from', { type: 'datetime-local' }),
    field('to', 'Created before', { type: 'datetime-local' }),
    h('label', {}, 'Job ID', id),
    h('div', { class: 'actions' }, h('button', { type: 'submit' }, 'Find'), problem),
  )
  return { node, filter }
}

function makeList() {
  const { node, body, row } = table('Jobs', [
    ['Job', 'name'],
    ['Queue', ''],
    ['State', ''],
    ['Created', 'number'],
    ['Wait time', 'number'],
    ['Run time', 'number'],
    ['Owner', 'number'],
    ['Label or error', 'wide'],
    ['Action', 'number'],
  ])
  const note = h('p', { class: 'soft', role: 'status' })
  const more = h('button', { class: 'plain', type: 'button', hidden: true }, 'More')
  let [filter, next, shown] = [{}, null, 0]
  const sort = h('select', {}, ...ORDERS.map(([value, text]) => h('option', { value }, text)))

  const read = async (from) => {
    const params = new URLSearchParams({ ...filter, ...(sort.value === '' ? {} : { sort: sort.value }), limit: '100', ...(from === null ? {} : { cursor: from }) })
    const answer = await call('GET', `/api/v1/jobs/search?${params}`)
    next = answer.next
    shown += answer.jobs.length
    body.append(...answer.jobs.map((job) => jobRow(row, job)))
    more.hidden = next === null
    const jobs = `${formatCount(shown)} ${shown === 1 ? 'job' : 'jobs'}`
    setText(note, next === null ? jobs : `${jobs} so far; there may be more`)
  }
  const find = async (newFilter) => {
    filter = newFilter
    shown = 0
    const previousRows = [...body.children]
    await read(null)
    for (const old of previousRows) old.remove()
  }
  const readMore = async () => {
    const last = body.lastElementChild
    await read(next)
    // After the last page the button is hidden and loses the focus, so focus the first new row.
    if (more.hidden && document.activeElement === more) focusNode(last.nextElementSibling ?? last)
  }
  more.addEventListener('click', () => readMore().catch((error) => setText(note, error.message)))
  sort.addEventListener('change', () => find(filter).catch((error) => setText(note, error.message)))
  const currentFilter = () => (filter.owner_id === undefined ? filter : { ...filter, owner_id: Number(filter.owner_id) })
  const actions = h(
    'div',
    { class: 'actions' },
    bulkButton('retry', currentFilter, 'Retry all failed jobs found'),
    bulkButton('cancel', currentFilter, 'Cancel all queued and running jobs found'),
    bulkButton('delete', currentFilter, 'Delete all finished jobs found'),
  )
  return { node: panel('Jobs', {}, h('label', { class: 'period' }, 'Order ', sort), actions, node, note, more), find }
}

const durationBetween = (from, to) => (from === null || to === null ? '–' : formatDuration(Date.parse(to) - Date.parse(from)))

function jobRow(row, job) {
  const due = job.due_at ?? job.created_at
  const action =
    job.status === 'failed' && job.retried_by === null
      ? retryButton(job.job_id, job.name)
      : job.status === 'waiting' || job.status === 'queued' || job.status === 'running'
        ? cancelButton(job.job_id, job.name)
        : job.retried_by === null
          ? ''
          : h('a', { href: `/monitor/jobs/${job.retried_by}` }, 'Retried')
  return row(
    h('a', { class: 'job', href: `/monitor/jobs/${job.job_id}` }, job.name, h('code', {}, shortId(job.job_id))),
    h('span', { class: 'bound' }, job.queue),
    h('span', { class: `chip ${TONES[job.status]}` }, job.status),
    h('time', { datetime: job.created_at }, formatDateTime(job.created_at)),
    durationBetween(due, job.started_at),
    durationBetween(job.started_at, job.finished_at),
    job.owner_id === null ? '–' : String(job.owner_id),
    job.error === null ? job.label : h('span', { class: 'bad' }, `${job.error.code}: ${job.error.detail}`),
    action,
  )
}
