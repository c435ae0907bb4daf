// What a job waits for, what it is about, the jobs that it retries, and what it was given and has given back.

import { h, panel } from './dom.js'
import { brief, count, exactly } from './format.js'

const linkTo = (id, name) => h('a', { href: `/monitor/jobs/${id}` }, `${name} `, h('code', {}, brief(id)))

/** Shown while it waits. */
export function makeWaits() {
  const text = h('p', {})
  const list = h('ul', { class: 'bare' })
  const node = panel('Waits for', { hidden: true }, text, list)
  const update = ({ job, waits_for, due_at }) => {
    node.hidden = job.status !== 'queued' || waits_for === null
    if (node.hidden) return
    const { ahead, running, queue } = waits_for
    const limit = queue.most_running === null ? '' : ` At most ${count(queue.most_running)} jobs of its queue run at once.`
    text.textContent = queue.paused_at === null ? waitOf(ahead, running.length, due_at !== null) + limit : `Its queue has been paused since ${exactly(queue.paused_at)}.`
    list.replaceChildren(...running.map(({ job_id, name }) => h('li', {}, 'Running: ', linkTo(job_id, name))))
  }
  return { node, update }
}

// Counted up to this number.
const MAX_AHEAD = 1000

function waitOf(ahead, running, isLater) {
  const others = ahead >= MAX_AHEAD ? `${count(MAX_AHEAD)} or more jobs are` : ahead === 1 ? 'One job is' : `${count(ahead)} jobs are`
  if (ahead > 0) return `${others} before it in its mailbox.`
  if (isLater) return 'It is not due yet.'
  return running > 0 ? 'It is next in its mailbox.' : 'It is next in its mailbox, and starts once a worker has room.'
}

const KINDS = {
  account: 'Account',
  collection: 'Collection',
  conversation: 'Conversation',
  document: 'Document',
  payment: 'Payment',
  post: 'Post',
  send: 'Message',
}

/** Links, and the chain of retries that the job is part of. */
export function makeRelations() {
  const links = h('ul', { class: 'bare' })
  const about = panel('About', {}, links)
  const list = h('ol', { class: 'bare' })
  const retries = panel('Retries', {}, list)
  const node = h('div', { class: 'columns' }, about, retries)
  const update = ({ job, links: all, chain: { retry_of, retried_by } }) => {
    about.hidden = all.length === 0
    retries.hidden = retry_of.length + retried_by.length === 0
    node.hidden = about.hidden && retries.hidden
    links.replaceChildren(...all.map(({ kind, id, path }) => h('li', {}, h('a', { href: path }, `${KINDS[kind]} ${id}`))))
    const item = (id) => h('li', {}, id === job.job_id ? h('span', { 'aria-current': 'true' }, 'This job ', h('code', {}, brief(id))) : linkTo(id, 'Job'))
    list.replaceChildren(...[...retry_of, job.job_id, ...retried_by].map(item))
  }
  return { node, update }
}

/** Payload and result, folded; secrets are masked by the service. */
export function makeContents() {
  const [payload, result] = [fold('Payload'), fold('Result')]
  const node = h('div', { class: 'columns' }, payload.node, result.node)
  const update = (details) => {
    payload.show(details.payload)
    result.show(details.job.result)
    node.hidden = payload.node.hidden && result.node.hidden
  }
  return { node, update }
}

function fold(title) {
  const text = h('pre', { tabindex: '0', role: 'region', 'aria-label': title })
  const node = h('details', { class: 'panel' }, h('summary', {}, title), text)
  const show = (value) => {
    node.hidden = value === null || value === undefined
    const json = JSON.stringify(value, null, 2) ?? ''
    // An unchanged one keeps its place and its selection.
    if (text.textContent !== json) text.textContent = json
  }
  return { node, show }
}
