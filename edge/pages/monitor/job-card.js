// Card of a job, with its state, progress, facts, outcome and buttons.

import { button } from '../parts/actions.js'
import { copyButton, h, keepFocus, setText } from '../parts/dom.js'
import { formatCount, formatDateTimeMs, formatDuration, showAge } from '../parts/format.js'
import { cancelButton, FINAL_STATUSES, jobPath, progressBar, retryButton, TONES } from '../parts/jobs.js'
import { facts } from '../parts/table.js'
import { findRunnable, openNewJob } from './enqueue.js'
import { ownerName } from './owners.js'

/** Name of the job that is a batch. */
export const BATCH_TASK = 'jobs.batch'

/** Makes the card with state, progress, facts, outcome and buttons of a job. */
export function makeCard({ job: { job_id } }, account) {
  const status = h('span', { class: 'chip status' })
  const label = h('p', { class: 'label' })
  const bar = progressBar()
  const known = h('div', { class: 'job-facts' })
  const outcome = h('div', {})
  const actions = h('div', { class: 'actions' })
  const head = h('div', { class: 'line' }, status, label, h('span', { class: 'gap' }), actions)
  const node = h('section', { class: 'panel', 'aria-label': 'Job' }, head, bar.node, known, outcome)
  let [shown, shownFacts] = ['', '']
  const update = (details) => {
    const { job } = details
    // A batch waits for its jobs while they run.
    const shownStatus = job.name === BATCH_TASK && job.status === 'waiting' ? 'running' : job.status
    setText(status, shownStatus)
    status.className = `chip status ${TONES[shownStatus]}`
    setText(label, job.label)
    bar.node.hidden = job.status !== 'running' && job.progress === null
    bar.update(job.status === 'done' ? { current: 1, total: 1 } : job.status === 'running' ? job.progress : (job.progress ?? { current: 0, total: 1 }))
    const { label: _, progress: __, ...slow } = job
    const factsKey = JSON.stringify([{ ...details, job: slow, log: null, payload: null }])
    // Redrawing unchanged facts would lose a selection.
    if (shownFacts !== factsKey) keepFocus(known, () => known.replaceChildren(factsOf(details, job_id, account)))
    shownFacts = factsKey
    // Redraw only after a change, so that a pressed button stays busy until then.
    const now = JSON.stringify([job.status, job.error, details.chain.retried_by])
    if (shown === now) return
    shown = now
    outcome.replaceChildren(...errorNodes(job))
    keepFocus(actions, () => actions.replaceChildren(...actionsOf(details, account)))
  }
  return { node, update }
}

function factsOf(details, id, account) {
  const { job, owner_id, request_id, mailbox, key, priority, due_at } = details
  const time = (iso) => iso && formatDateTimeMs(iso)
  // The own run of a batch only counts its jobs.
  const isBatch = job.name === BATCH_TASK
  return facts([
    ['Job', copied(id, 'job ID')],
    ['Queue', h('a', { href: `/monitor/jobs?queue=${encodeURIComponent(job.queue)}` }, job.queue)],
    job.batch_id && ['Batch', h('a', { href: jobPath(job.batch_id) }, h('code', {}, job.batch_id))],
    key && ['Key', copied(key, 'key')],
    priority !== 'normal' && ['Priority', priority],
    ['Owner', owner_id === null ? 'the service' : ownerName(owner_id, account)],
    !isBatch && mailbox && ['Mailbox', h('span', {}, h('code', {}, mailbox.name), ` · ${limitText(mailbox.limit)}`)],
    !isBatch && ['Attempts', attemptsText(details)],
    ['Created', time(job.created_at)],
    ['Due', time(due_at)],
    !isBatch && ['Started', time(job.started_at)],
    ['Finished', time(job.finished_at)],
    [job.status === 'failed' ? 'Can be retried until' : 'Kept until', time(job.expires_at)],
    (job.started_at || isBatch) && [job.finished_at ? 'Took' : 'Running for', runTime(isBatch ? { ...job, started_at: job.created_at } : job)],
    request_id && ['Request', copied(request_id, 'request ID')],
  ])
}

const copied = (text, name) => h('span', { class: 'copied' }, h('code', {}, text), copyButton(text, name))

function runTime({ started_at, finished_at }) {
  const node = h('span', {})
  if (finished_at === null) showAge(node, started_at)
  else setText(node, formatDuration(Date.parse(finished_at) - Date.parse(started_at)))
  return node
}

/** Describes attempts, tries and interruptions. A job with one try is not retried automatically. */
function attemptsText({ job, tries, max_tries, interruptions }) {
  const counts = [formatCount(job.attempts)]
  if (max_tries === 1) counts.push('not retried automatically')
  else if (FINAL_STATUSES.has(job.status) && tries <= 1) counts.push(`up to ${formatCount(max_tries)} tries`)
  else counts.push(`${formatCount(tries)} of ${formatCount(max_tries)} tries`)
  if (interruptions > 0) counts.push(`${formatCount(interruptions)} ${interruptions === 1 ? 'interruption' : 'interruptions'}`)
  return counts.join(' · ')
}

const limitText = (limit) => (limit === null ? 'no limit' : limit === 1 ? 'one at a time' : `up to ${formatCount(limit)} at a time`)

function errorNodes({ error }) {
  return error === null ? [] : [h('p', { class: 'bad outcome' }, error.detail, ' ', h('code', {}, error.code))]
}

function actionsOf({ job, chain, payload }, account) {
  const { job_id, name, status } = job
  // The panel of a batch has its own buttons.
  if (name === BATCH_TASK) return []
  if (!FINAL_STATUSES.has(status)) return [cancelButton(job_id, name)]
  const again = h('span', {})
  if (payload !== null)
    findRunnable(job).then(
      (found) =>
        found &&
        again.replaceChildren(button('Run again', () => openNewJob(account, { ...found, args: payload }, 'Run again'), { label: `Run again: ${name}` })),
      () => {},
    )
  const isRetryable = status === 'failed' && chain.retried_by.length === 0
  return [isRetryable && retryButton(job_id, name, (retry) => location.assign(jobPath(retry.job_id))), again].filter(Boolean)
}
