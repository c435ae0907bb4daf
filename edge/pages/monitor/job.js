// Page of one job, with its facts, progress, attempts, outcome, log and events. A batch also shows its jobs.

import { button } from '../parts/actions.js'
import { call } from '../parts/api.js'
import { copyButton, h, keepFocus, setText } from '../parts/dom.js'
import { formatCount, formatDateTimeMs, formatDuration, showAge } from '../parts/format.js'
import { cancelButton, FINAL_STATUSES, jobPath, progressBar, retryButton, TONES } from '../parts/jobs.js'
import { notice } from '../parts/states.js'
import { subscribe } from '../parts/streams.js'
import { facts } from '../parts/table.js'
import { makeBatch } from './batch.js'
import { findRunnable, openNewJob } from './enqueue.js'
import { makeAttempts } from './job-attempts.js'
import { makeContents, makeRelations, makeWaiting } from './job-details.js'
import { makeEvents } from './job-events.js'
import { makeLog } from './job-log.js'
import { ownerName } from './owners.js'

const BATCH_TASK = 'jobs.batch'
// Frames of the stream have no numbers, so each causes a read of details and history, at most this often.
const READ_MS = 1000
// Interval of reads that refresh the log and the number of jobs ahead. Their changes cause no event of the job.
const REFRESH_MS = 5000
// Workers store the last log lines about a second after the job ends.
const FINAL_REFRESH_MS = 2500

export async function page({ account, params: { job_id: id }, showConnection, setTitle }) {
  const path = `/api/v1/jobs/${encodeURIComponent(id)}`
  const readAll = () => Promise.all([call('GET', `${path}/details`), call('GET', `${path}/history`)])
  let details
  let history
  try {
    ;[details, history] = await readAll()
  } catch (error) {
    if (error.status !== 404) throw error
    return [missingNotice()]
  }
  const isBatch = details.job.name === BATCH_TASK
  setTitle(isBatch ? (details.payload?.name ?? 'Batch') : details.job.name)
  const card = makeCard(details, account)
  const events = makeEvents()
  const batch = isBatch ? makeBatch(id, account) : null
  const parts = [card, ...(isBatch ? [] : [makeWaiting(), makeAttempts()]), makeRelations(account), makeContents(), makeLog()]
  const update = () => {
    for (const part of parts) part.update(details)
    events.fill(history)
  }
  update()
  follow()
  const [first, ...others] = parts.map(({ node }) => node)
  return [backLink(), first, batch, ...others, events.node]

  function follow() {
    if (FINAL_STATUSES.has(details.job.status)) return showConnection('none')
    const refresh = throttle(async () => {
      const [now, events] = await readAll()
      // This response is outdated if the stream or a later response has already delivered the final status.
      if (FINAL_STATUSES.has(details.job.status) && !FINAL_STATUSES.has(now.job.status)) return
      ;[details, history] = [now, events]
      update()
    }, READ_MS)
    const stop = subscribe(`job:${id}`, { status: onStatus }, (state) => {
      showConnection(typeof state === 'number' ? 'lost' : state)
      // The stream starts with the current state. Only a read returns the events that it has missed.
      if (state === 'live') refresh()
    })
    const timer = setInterval(() => document.hidden || refresh(), REFRESH_MS)
    function onStatus({ status, label, progress = null, error = null }) {
      details = { ...details, job: { ...details.job, status, label, progress, error } }
      card.update(details)
      refresh()
      if (!FINAL_STATUSES.has(status)) return
      stop()
      clearInterval(timer)
      setTimeout(refresh, FINAL_REFRESH_MS)
      showConnection('none')
    }
  }
}

/** Returns a function that runs `work` immediately, but not more often than every `ms`. Failures end silently. */
function throttle(work, ms) {
  let [isBusy, isWanted] = [false, false]
  return async function run() {
    if (isBusy) {
      isWanted = true
      return
    }
    isBusy = true
    isWanted = false
    await work().catch(() => {})
    setTimeout(() => {
      isBusy = false
      if (isWanted) run()
    }, ms)
  }
}

const missingNotice = () =>
  notice('No such job', 'The job does not exist, belongs to another account, or was deleted at the end of its retention.', h('a', { class: 'button', href: '/monitor/jobs' }, 'All jobs'))

/** Makes the link to the list of jobs, with the filters that it had before. */
function backLink() {
  const { entries, currentEntry } = globalThis.navigation ?? {}
  const before = entries === undefined ? null : navigation.entries()[currentEntry.index - 1]?.url
  const isList = before && new URL(before).pathname === '/monitor/jobs'
  return h('p', { class: 'back' }, h('a', { href: isList ? before : '/monitor/jobs' }, isList && new URL(before).search !== '' ? '← Back to the filtered jobs' : '← Jobs'))
}

function makeCard({ job: { job_id } }, account) {
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
  return facts([
    ['Job', copied(id, 'job ID')],
    ['Queue', h('a', { href: `/monitor/jobs?queue=${encodeURIComponent(job.queue)}` }, job.queue)],
    job.batch_id && ['Batch', h('a', { href: jobPath(job.batch_id) }, h('code', {}, job.batch_id))],
    key && ['Key', copied(key, 'key')],
    priority !== 'normal' && ['Priority', priority],
    ['Owner', owner_id === null ? 'the service' : ownerName(owner_id, account)],
    mailbox && ['Mailbox', h('span', {}, h('code', {}, mailbox.name), ` · ${limitText(mailbox.limit)}`)],
    ['Attempts', attemptsText(details)],
    ['Created', time(job.created_at)],
    ['Due', time(due_at)],
    ['Started', time(job.started_at)],
    ['Finished', time(job.finished_at)],
    [job.status === 'failed' ? 'Can be retried until' : 'Kept until', time(job.expires_at)],
    job.started_at && [job.finished_at ? 'Took' : 'Running for', runTime(job)],
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
    findRunnable(job).then((found) => found && again.replaceChildren(button('Run again', () => openNewJob(account, { ...found, args: payload }, 'Run again'), { label: `Run again: ${name}` })), () => {})
  const isRetryable = status === 'failed' && chain.retried_by.length === 0
  return [isRetryable && retryButton(job_id, name, (retry) => location.assign(jobPath(retry.job_id))), again].filter(Boolean)
}
