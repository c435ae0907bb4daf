// Page of one job, with its facts, progress, attempts, outcome, log and events.

import { call, FINAL_STATUSES, subscribe } from './api.js'
import { h, keepFocus, setText } from './dom.js'
import { formatCount, formatDateTimeMs, showAge, formatDuration } from './format.js'
import { makeAttempts } from './job-attempts.js'
import { makeContents, makeRelations, makeWaiting } from './job-details.js'
import { makeEvents } from './job-events.js'
import { makeLog } from './job-log.js'
import { cancelButton, progressBar, retryButton, TONES } from './tables.js'

// Interval of reads that refresh the log and the number of jobs ahead. Their changes cause no event of the job.
const REFRESH_MS = 5000
// Workers store the last log lines about a second after the job ends.
const FINAL_REFRESH_MS = 2500

export async function show(view, { id, showConnection }) {
  const path = `/api/v1/jobs/${encodeURIComponent(id)}`
  let details = await call('GET', `${path}/details`)
  document.title = `${details.job.name} · Millrace`
  const card = makeCard(details)
  const parts = [card, makeWaiting(), makeAttempts(), makeRelations(), makeContents(), makeLog()]
  const events = makeEvents()
  view.replaceChildren(...parts.map(({ node }) => node), events.node)
  const update = () => {
    for (const part of parts) part.update(details)
  }
  update()

  const readDetails = async () => {
    const [now, storedEvents] = await Promise.all([call('GET', `${path}/details`), call('GET', `${path}/history`)])
    // This response is outdated if the stream or a later response has already delivered the final status.
    if (FINAL_STATUSES.has(details.job.status) && !FINAL_STATUSES.has(now.job.status)) return
    details = now
    update()
    events.fill(storedEvents)
  }
  const refresh = () => readDetails().catch(() => {})
  events.fill(await call('GET', `${path}/history`))
  if (FINAL_STATUSES.has(details.job.status)) return showConnection('none')

  const onStatus = (data, seq) => {
    events.add(seq, 'status', new Date().toISOString(), data)
    const { status, label, progress = null, error = null } = data
    const isChanged = status !== details.job.status
    details = { ...details, job: { ...details.job, status, label, progress, error } }
    card.update(details)
    if (isChanged || FINAL_STATUSES.has(status)) refresh()
    if (!FINAL_STATUSES.has(status)) return
    stop()
    setTimeout(refresh, FINAL_REFRESH_MS)
    showConnection('none')
  }
  const stop = subscribe(`${path}/events`, { status: onStatus }, (state) => {
    showConnection(state === 'live' ? 'live' : 'lost')
    // The stream starts with the current state. Only a read of the history returns the events that the stream has
    // missed.
    if (state === 'live') refresh()
  })
  setInterval(() => {
    if (!FINAL_STATUSES.has(details.job.status) && !document.hidden) refresh()
  }, REFRESH_MS)
}

function makeCard({ job: { job_id, name } }) {
  const status = h('span', { class: 'chip' })
  const label = h('p', { class: 'label' })
  const bar = progressBar()
  const facts = h('dl', { class: 'facts' })
  const outcome = h('div', {})
  const actions = h('div', { class: 'actions' })
  const head = h('div', { class: 'line' }, h('h1', {}, name), status, h('span', { class: 'gap' }), actions)
  const node = h('section', { class: 'panel', 'aria-label': 'Job' }, head, label, bar.node, facts, outcome)
  let shown = ''

  const update = (details) => {
    const { job } = details
    setText(status, job.status)
    status.className = `chip ${TONES[job.status]}`
    setText(label, job.label)
    bar.node.hidden = job.status !== 'running' && job.progress === null
    bar.update(job.status === 'done' ? { current: 1, total: 1 } : job.status === 'running' ? job.progress : (job.progress ?? { current: 0, total: 1 }))
    facts.replaceChildren(...factsOf(details, job_id))
    // Redraw only after a change, so that a pressed button stays busy until then.
    const now = JSON.stringify([job.status, job.error, details.chain.retried_by])
    if (shown === now) return
    shown = now
    outcome.replaceChildren(...errorNodes(job))
    keepFocus(actions, () => actions.replaceChildren(...actionsOf(details)))
  }
  return { node, update }
}

function factsOf({ job, owner_id, request_id, mailbox, key, priority, due_at, tries, max_tries, interruptions }, id) {
  const runTime = h('span', {})
  if (job.started_at !== null && job.finished_at === null) showAge(runTime, job.started_at)
  else if (job.started_at !== null) setText(runTime, formatDuration(Date.parse(job.finished_at) - Date.parse(job.started_at)))
  const fact = (name, ...value) => h('div', {}, h('dt', {}, name), h('dd', {}, ...value))
  const counts = [`${formatCount(tries)} of ${formatCount(max_tries)} tries`]
  if (interruptions > 0) counts.push(`${formatCount(interruptions)} ${interruptions === 1 ? 'interruption' : 'interruptions'}`)
  return [
    fact('Job', h('code', {}, id)),
    fact('Queue', job.queue),
    job.batch_id && fact('Batch', h('a', { href: `/monitor/jobs/${job.batch_id}` }, h('code', {}, job.batch_id))),
    key && fact('Key', h('code', {}, key)),
    priority !== 'normal' && fact('Priority', priority),
    fact('Owner', owner_id === null ? 'none' : h('a', { href: `/api/v1/auth/users/${owner_id}` }, `Account ${owner_id}`)),
    mailbox && fact('Mailbox', h('code', {}, mailbox.name), ` · ${limitText(mailbox.limit)}`),
    fact('Attempts', `${formatCount(job.attempts)} · ${counts.join(' · ')}`),
    fact('Created', formatDateTimeMs(job.created_at)),
    due_at && fact('Due', formatDateTimeMs(due_at)),
    job.started_at && fact('Started', formatDateTimeMs(job.started_at)),
    job.finished_at && fact('Finished', formatDateTimeMs(job.finished_at)),
    job.expires_at && fact(job.status === 'failed' ? 'Can be retried until' : 'Kept until', formatDateTimeMs(job.expires_at)),
    job.started_at && fact(job.finished_at ? 'Took' : 'Running for', runTime),
    request_id && fact('Request', h('code', {}, request_id)),
  ].filter(Boolean)
}

const limitText = (limit) => (limit === null ? 'no limit' : limit === 1 ? 'one at a time' : `up to ${formatCount(limit)} at a time`)

function errorNodes({ error }) {
  return error === null ? [] : [h('p', { class: 'bad outcome' }, error.detail, ' ', h('code', {}, error.code))]
}

function actionsOf({ job: { job_id, name, status }, chain }) {
  if (status === 'failed' && chain.retried_by.length === 0)
    return [retryButton(job_id, name, (again) => location.assign(`/monitor/jobs/${again.job_id}`))]
  return FINAL_STATUSES.has(status) ? [] : [cancelButton(job_id, name)]
}
