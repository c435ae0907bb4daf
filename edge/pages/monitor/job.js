// One job: what it is, how far along it is, how it ended, and its events.

import { call, ENDED, follow } from './api.js'
import { h, panel, say, table } from './dom.js'
import { clock, moment, passed, since } from './format.js'
import { cancelButton, progressBar, retryButton, TONES } from './tables.js'

const MOST_ROWS = 500

export async function show(view, { id, showLink }) {
  const path = `/api/v1/jobs/${encodeURIComponent(id)}`
  let job = await call('GET', path)
  document.title = `${job.name} · Millrace`
  const card = makeCard(job)
  const events = makeEvents()
  view.replaceChildren(card.node, events.node)
  card.update(job)

  const reread = async () => {
    job = await call('GET', path)
    card.update(job)
  }
  const past = await call('GET', `${path}/history`)
  for (const { seq, kind, at, data } of past) events.add(seq, kind, at, data)
  if (ENDED.has(job.status)) return showLink('none')

  const take = (kind) => (data, seq) => {
    events.add(seq, kind, new Date().toISOString(), data)
    if (kind !== 'status') return
    card.update({ ...job, status: data.status, label: data.label, progress: data.progress ?? null })
    if (data.status !== job.status) reread().catch(() => {})
    if (!ENDED.has(data.status)) return
    stop()
    showLink('none')
  }
  const stop = follow(`${path}/events`, { status: take('status') }, (state) => {
    showLink(state === 'live' ? 'live' : 'lost')
  })
}

function makeCard({ job_id, name, queue, retry_of }) {
  const status = h('span', { class: 'chip' })
  const label = h('p', { class: 'label' })
  const bar = progressBar()
  const facts = h('dl', { class: 'facts' })
  const outcome = h('div', {})
  const actions = h('div', { class: 'actions' })
  const head = h('div', { class: 'line' }, h('h1', {}, name), status, h('span', { class: 'gap' }), actions)
  const node = h('section', { class: 'panel' }, head, label, bar.node, facts, outcome)
  let shown = ''

  const update = (job) => {
    say(status, job.status)
    status.className = `chip ${TONES[job.status]}`
    say(label, job.label)
    bar.node.hidden = job.status !== 'running' && job.progress === null
    bar.update(job.status === 'done' ? { current: 1, total: 1 } : job.status === 'running' ? job.progress : (job.progress ?? { current: 0, total: 1 }))
    facts.replaceChildren(...factsOf(job, job_id, queue, retry_of))
    if (shown === job.status && job.status !== 'done') return
    shown = job.status
    outcome.replaceChildren(...outcomeOf(job))
    actions.replaceChildren(...actionsOf(job))
  }
  return { node, update }
}

function factsOf(job, id, queue, retryOf) {
  const took = h('span', {})
  if (job.started_at !== null && job.finished_at === null) since(took, job.started_at)
  else if (job.started_at !== null) say(took, passed(Date.parse(job.finished_at) - Date.parse(job.started_at)))
  const fact = (name, ...value) => h('div', {}, h('dt', {}, name), h('dd', {}, ...value))
  return [
    fact('Job', h('code', {}, id)),
    fact('Queue', queue),
    fact('Attempts', String(job.attempts)),
    fact('Created', moment(job.created_at)),
    job.started_at && fact('Started', moment(job.started_at)),
    job.finished_at && fact('Ended', moment(job.finished_at)),
    job.started_at && fact(job.finished_at ? 'Took' : 'Running for', took),
    retryOf && fact('Retry of', h('a', { href: `/monitor/jobs/${retryOf}` }, h('code', {}, retryOf))),
  ].filter(Boolean)
}

function outcomeOf({ status, error, result }) {
  if (error !== null) return [h('p', { class: 'bad outcome' }, error.detail, ' ', h('code', {}, error.code))]
  if (status !== 'done' || result === null) return []
  return [h('h2', {}, 'Result'), h('pre', { tabindex: '0' }, JSON.stringify(result, null, 2))]
}

function actionsOf({ job_id, name, status }) {
  if (status === 'failed')
    return [retryButton(job_id, name, (again) => location.assign(`/monitor/jobs/${again.job_id}`))]
  return ENDED.has(status) ? [] : [cancelButton(job_id, name)]
}

function makeEvents() {
  const { node, body, row } = table('Events', [
    ['No.', 'number'],
    ['Time', 'number'],
    ['Event', ''],
    ['Details', 'wide'],
  ])
  const empty = h('p', { class: 'soft' }, 'Nothing has happened yet.')
  let last = 0
  /** Newest first. */
  const add = (seq, kind, at, data) => {
    if (seq <= last) return
    last = seq
    empty.hidden = true
    const what = kind === 'status' ? (data.label ?? '') : JSON.stringify(data)
    const chip = h('span', { class: `chip ${TONES[data.status] ?? ''}` }, kind === 'status' ? data.status : kind)
    body.prepend(row(String(seq), clock(at), chip, what))
    if (body.childElementCount > MOST_ROWS) body.lastElementChild.remove()
  }
  return { node: panel('Events', {}, node, empty), add }
}
