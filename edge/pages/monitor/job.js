// One job: what it is, how far along it is, how its attempts went and it ended, and its events.

import { call, ENDED, follow } from './api.js'
import { h, keepFocus, say } from './dom.js'
import { count, exactly, since, span } from './format.js'
import { makeAttempts } from './job-attempts.js'
import { makeContents, makeRelations, makeWaits } from './job-details.js'
import { makeEvents } from './job-events.js'
import { makeLog } from './job-log.js'
import { cancelButton, progressBar, retryButton, TONES } from './tables.js'

// What a job waits for changes without an event of its own, and so does its log.
const LOOK_MS = 5000
// The last lines of its log are stored a second after its end.
const LAST_LOOK_MS = 2500

export async function show(view, { id, showLink }) {
  const path = `/api/v1/jobs/${encodeURIComponent(id)}`
  let details = await call('GET', `${path}/details`)
  document.title = `${details.job.name} · Millrace`
  const card = makeCard(details)
  const parts = [card, makeWaits(), makeAttempts(), makeRelations(), makeContents(), makeLog()]
  const events = makeEvents()
  view.replaceChildren(...parts.map(({ node }) => node), events.node)
  const update = () => {
    for (const part of parts) part.update(details)
  }
  update()

  const reread = async () => {
    const [now, past] = await Promise.all([call('GET', `${path}/details`), call('GET', `${path}/history`)])
    // An answer that was overtaken by a later one.
    if (ENDED.has(details.job.status) && !ENDED.has(now.job.status)) return
    details = now
    update()
    events.fill(past)
  }
  const look = () => reread().catch(() => {})
  events.fill(await call('GET', `${path}/history`))
  if (ENDED.has(details.job.status)) return showLink('none')

  const take = (data, seq) => {
    events.add(seq, 'status', new Date().toISOString(), data)
    const { status, label, progress = null, error = null } = data
    const isNews = status !== details.job.status
    details = { ...details, job: { ...details.job, status, label, progress, error } }
    card.update(details)
    if (isNews || ENDED.has(status)) look()
    if (!ENDED.has(status)) return
    stop()
    setTimeout(look, LAST_LOOK_MS)
    showLink('none')
  }
  const stop = follow(`${path}/events`, { status: take }, (state) => {
    showLink(state === 'live' ? 'live' : 'lost')
    // The stream begins with the present: what has happened since the history was read is in it now.
    if (state === 'live') look()
  })
  setInterval(() => {
    if (!ENDED.has(details.job.status) && !document.hidden) look()
  }, LOOK_MS)
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
    say(status, job.status)
    status.className = `chip ${TONES[job.status]}`
    say(label, job.label)
    bar.node.hidden = job.status !== 'running' && job.progress === null
    bar.update(job.status === 'done' ? { current: 1, total: 1 } : job.status === 'running' ? job.progress : (job.progress ?? { current: 0, total: 1 }))
    facts.replaceChildren(...factsOf(details, job_id))
    // A button that was pressed says so until something has changed.
    const now = JSON.stringify([job.status, job.error, details.chain.retried_by])
    if (shown === now) return
    shown = now
    outcome.replaceChildren(...outcomeOf(job))
    keepFocus(actions, () => actions.replaceChildren(...actionsOf(details)))
  }
  return { node, update }
}

function factsOf({ job, owner_id, request_id, mailbox, due_at, tries, max_tries, interruptions }, id) {
  const took = h('span', {})
  if (job.started_at !== null && job.finished_at === null) since(took, job.started_at)
  else if (job.started_at !== null) say(took, span(Date.parse(job.finished_at) - Date.parse(job.started_at)))
  const fact = (name, ...value) => h('div', {}, h('dt', {}, name), h('dd', {}, ...value))
  const times = [`${count(tries)} of ${count(max_tries)} tries`]
  if (interruptions > 0) times.push(`${count(interruptions)} ${interruptions === 1 ? 'interruption' : 'interruptions'}`)
  return [
    fact('Job', h('code', {}, id)),
    fact('Queue', job.queue),
    fact('Owner', owner_id === null ? 'nobody' : h('a', { href: `/api/v1/auth/users/${owner_id}` }, `Account ${owner_id}`)),
    mailbox && fact('Mailbox', h('code', {}, mailbox.name), ` · ${limitOf(mailbox.limit)}`),
    fact('Attempts', `${count(job.attempts)} · ${times.join(' · ')}`),
    fact('Created', exactly(job.created_at)),
    due_at && fact('Due', exactly(due_at)),
    job.started_at && fact('Started', exactly(job.started_at)),
    job.finished_at && fact('Ended', exactly(job.finished_at)),
    job.started_at && fact(job.finished_at ? 'Took' : 'Running for', took),
    request_id && fact('Request', h('code', {}, request_id)),
  ].filter(Boolean)
}

const limitOf = (limit) => (limit === null ? 'any number at once' : limit === 1 ? 'one at a time' : `${count(limit)} at once`)

function outcomeOf({ error }) {
  return error === null ? [] : [h('p', { class: 'bad outcome' }, error.detail, ' ', h('code', {}, error.code))]
}

function actionsOf({ job: { job_id, name, status }, chain }) {
  if (status === 'failed' && chain.retried_by.length === 0)
    return [retryButton(job_id, name, (again) => location.assign(`/monitor/jobs/${again.job_id}`))]
  return ENDED.has(status) ? [] : [cancelButton(job_id, name)]
}
