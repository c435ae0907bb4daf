// Bulk actions on selected jobs, or on all jobs that match a filter. One job of the service carries each out.

import { actionButton } from '../parts/actions.js'
import { call, readList, withQuery } from '../parts/api.js'
import { confirmAction } from '../parts/dialog.js'
import { announce } from '../parts/dom.js'
import { formatCount } from '../parts/format.js'
import { jobPath, waitForJob } from '../parts/jobs.js'

const MOST = 100_000
const PAGE = 200
// Failures older than this are not counted before a retry.
const FAILURE_SECONDS = 604_800

/** Returns the path of the job list with a filter. */
export const jobsPath = (filter) => withQuery('/monitor/jobs', filter)

const ACTIONS = {
  retry: { text: 'Retry all', verb: 'Retry', statuses: ['failed'], note: 'Each failed job runs again as a new job.', isDanger: false },
  cancel: {
    text: 'Cancel all',
    verb: 'Cancel',
    statuses: ['waiting', 'queued', 'running'],
    note: 'Running jobs stop. Cancelled jobs cannot be continued.',
    isDanger: true,
  },
  delete: { text: 'Delete all', verb: 'Delete', statuses: ['done', 'failed', 'cancelled'], note: 'Their results and logs are lost.', isDanger: true },
}

const NAMES = { owner_id: 'owner', request_id: 'request', search: 'text', from: 'created from', to: 'created before', status: 'state' }

/**
 * Makes a button that says how many jobs match, asks, starts the job of the action and opens its page. `filterOrGetter`
 * is a filter, or a function that returns the current one.
 */
export function bulkButton(action, filterOrGetter, label) {
  const { text, isDanger } = ACTIONS[action]
  const run = async () => {
    const filter = typeof filterOrGetter === 'function' ? filterOrGetter() : filterOrGetter
    if (!(await ask(action, filter, label))) return null
    const { job_id } = await call('POST', '/api/v1/jobs/bulk', { json: { action, filter: typedFilter(filter) } })
    location.assign(jobPath(job_id))
    return null
  }
  const node = actionButton(text, 'Counting…', label, run, true)
  if (isDanger) node.classList.add('risky')
  return node
}

const typedFilter = ({ owner_id, ...filter }) => (owner_id === undefined ? filter : { ...filter, owner_id: Number(owner_id) })

async function ask(action, filter, label) {
  const { verb, note, isDanger } = ACTIONS[action]
  const { jobs, isExact } = await countJobs(action, filter)
  if (jobs === 0) {
    announce(`There is no job to ${verb.toLowerCase()}`)
    return false
  }
  const count = `${isExact ? '' : 'more than '}${formatCount(jobs)} ${jobs === 1 ? 'job' : 'jobs'}`
  const conditions = Object.entries(filter).map(([name, value]) => `${NAMES[name] ?? name} ${value}`)
  const scope = conditions.length === 0 ? 'No filter is set, so this affects all of them.' : `They match: ${conditions.join(', ')}.`
  const text = `${verb}s ${count}, at most ${formatCount(MOST)}. ${scope} ${note} The next page shows the progress.`
  return confirmAction(`${label}?`, text, `${verb} ${isExact ? count : 'jobs'}`, { isDanger })
}

/** Counts the jobs that an action would change. The count ends after a page of each status. */
async function countJobs(action, filter) {
  const { statuses } = ACTIONS[action]
  const { status, ...rest } = filter
  if (action === 'retry') {
    if (status !== undefined && status !== 'failed') return { jobs: 0, isExact: true }
    const { groups, total_is_exact } = await call('GET', withQuery('/api/v1/jobs/failures', { ...rest, seconds: FAILURE_SECONDS }))
    return { jobs: groups.reduce((sum, group) => sum + group.jobs - group.retried, 0), isExact: total_is_exact }
  }
  const counted = status === undefined ? statuses : statuses.filter((one) => one === status)
  const pages = await Promise.all(counted.map((one) => readList(withQuery('/api/v1/jobs/search', { ...rest, status: one, limit: PAGE }))))
  return { jobs: pages.reduce((sum, { items }) => sum + items.length, 0), isExact: pages.every(({ next }) => next === null) }
}

/** Returns the action of selected rows, which waits for its job and then reads the list again. */
export const bulkOfSelected = (action) => async (jobs, list) => {
  const { verb, note, isDanger } = ACTIONS[action]
  const count = `${formatCount(jobs.length)} ${jobs.length === 1 ? 'job' : 'jobs'}`
  if (isDanger && !(await confirmAction(`${verb} ${count}?`, note, `${verb} ${count}`))) return
  announce(`${verb}: ${count}`)
  const { job_id } = await call('POST', '/api/v1/jobs/bulk', { json: { action, ids: jobs.map((job) => job.job_id) } })
  const { done, refused } = await waitForJob(job_id)
  await list.reload()
  const left = refused === 0 ? '' : `. ${formatCount(refused)} could not be changed, because of their state`
  announce(`${verb}: ${formatCount(done)} done${left}`)
}
