// Page of one job, with its facts, progress, attempts, outcome, log and events. A batch also shows its jobs.

import { call } from '../parts/api.js'
import { h } from '../parts/dom.js'
import { FINAL_STATUSES } from '../parts/jobs.js'
import { notice } from '../parts/states.js'
import { subscribe } from '../parts/streams.js'
import { makeBatch } from './batch.js'
import { makeAttempts } from './job-attempts.js'
import { BATCH_TASK, makeCard } from './job-card.js'
import { LIST_HASH } from './list-hash.js'
import { makeContents, makeRelations, makeWaiting } from './job-details.js'
import { makeEvents } from './job-events.js'
import { makeLog } from './job-log.js'

// Frames of the stream have no numbers, so each causes a read of details and history, at most this often.
const READ_MS = 1000
// Interval of reads that refresh the log and the number of jobs ahead. Their changes cause no event of the job.
const REFRESH_MS = 5000
// Workers store the last log lines about a second after the job ends.
const FINAL_REFRESH_MS = 2500

export async function page({ account, params: { job_id: id }, showConnection, setTitle }) {
  const path = `/api/v1/jobs/${encodeURIComponent(id)}`
  const read = () => Promise.all([call('GET', `${path}/details`), call('GET', `${path}/history`)])
  let details
  let history
  try {
    ;[details, history] = await read()
  } catch (error) {
    if (error.status !== 404) throw error
    return [missingNotice()]
  }
  const isBatch = details.job.name === BATCH_TASK
  setTitle(isBatch ? (details.payload?.name ?? 'Batch') : details.job.name)
  const card = makeCard(details, account)
  const events = makeEvents()
  const parts = [card, ...(isBatch ? [] : [makeWaiting(), makeAttempts()]), makeRelations(account), makeContents(), makeLog()]
  const update = (now, stored) => {
    for (const part of parts) part.update(now)
    events.fill(stored)
  }
  update(details, history)
  if (FINAL_STATUSES.has(details.job.status)) showConnection('none')
  else follow(id, details, { read, update, card, showConnection })
  const [first, ...others] = parts.map(({ node }) => node)
  return [backLink(), first, isBatch ? makeBatch(id) : null, ...others, events.node]
}

/** Keeps the page of a job up to date until the job ends. */
function follow(id, first, { read, update, card, showConnection }) {
  let details = first
  const refresh = throttle(async () => {
    const [now, stored] = await read()
    // This response is outdated if the stream or a later response has already delivered the final status.
    if (FINAL_STATUSES.has(details.job.status) && !FINAL_STATUSES.has(now.job.status)) return
    details = now
    update(now, stored)
  }, READ_MS)
  const onStatus = ({ status, label, progress = null, error = null }) => {
    details = { ...details, job: { ...details.job, status, label, progress, error } }
    card.update(details)
    refresh()
    if (!FINAL_STATUSES.has(status)) return
    stop()
    clearInterval(timer)
    setTimeout(refresh, FINAL_REFRESH_MS)
    showConnection('none')
  }
  const stop = subscribe(`job:${id}`, { status: onStatus }, (state) => {
    showConnection(typeof state === 'number' ? 'lost' : state)
    // The stream starts with the current state. Only a read returns the events that it has missed.
    if (state === 'live') refresh()
  })
  const timer = setInterval(() => document.hidden || refresh(), REFRESH_MS)
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
  notice(
    'No such job',
    'The job does not exist, belongs to another account, or was deleted at the end of its retention.',
    h('a', { class: 'button', href: '/monitor/jobs' }, 'All jobs'),
  )

/** Makes the link to the list of jobs, with the filters that the list has put into the address. */
function backLink() {
  const query = location.hash.startsWith(LIST_HASH) ? location.hash.slice(LIST_HASH.length) : ''
  return h('p', { class: 'back' }, h('a', { href: query === '' ? '/monitor/jobs' : `/monitor/jobs?${query}` }, query === '' ? '← Jobs' : '← Back to the filtered jobs'))
}
