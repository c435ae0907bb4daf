// Panels with the details of a job, such as the jobs ahead, related records, retries, payload and result.

import { h, panel } from '../parts/dom.js'
import { formatCount, formatDateTimeMs, shortId } from '../parts/format.js'
import { jobPath } from '../parts/jobs.js'
import { ownerName } from './owners.js'

const jobLink = (id, name) => h('a', { href: jobPath(id) }, `${name} `, h('code', {}, shortId(id)))

/** Makes the panel that shows the jobs for which a waiting job waits, or how many are ahead of a queued one. */
export function makeWaiting() {
  const text = h('p', {})
  const list = h('ul', { class: 'bare' })
  const node = panel('Waiting for', { hidden: true }, text, list)
  const update = ({ job, waits_for, due_at }) => {
    node.hidden = waits_for === null
    if (node.hidden) return
    const { ahead, running, queue, jobs } = waits_for
    if (job.status === 'waiting') {
      text.textContent = jobs.length === 0 ? 'It waits for jobs that you may not see, or to be closed.' : 'It waits until these jobs have ended.'
      list.replaceChildren(...jobs.map(({ job_id, name, status }) => h('li', {}, `${status}: `, jobLink(job_id, name))))
      return
    }
    const limit = queue.limit === null ? '' : ` Its queue runs at most ${formatCount(queue.limit)} jobs.`
    text.textContent =
      queue.paused_at === null
        ? waitText(ahead, running.length, due_at !== null) + limit
        : `Its queue has been paused since ${formatDateTimeMs(queue.paused_at)}.`
    list.replaceChildren(...running.map(({ job_id, name }) => h('li', {}, 'Running: ', jobLink(job_id, name))))
  }
  return { node, update }
}

// The service stops counting at this number.
const MAX_AHEAD = 1000

function waitText(ahead, running, isScheduled) {
  const others = ahead >= MAX_AHEAD ? `${formatCount(MAX_AHEAD)} or more jobs are` : ahead === 1 ? 'One job is' : `${formatCount(ahead)} jobs are`
  if (ahead > 0) return `${others} ahead of it in its mailbox.`
  if (isScheduled) return 'It is not due yet.'
  return running > 0 ? 'It is next in its mailbox.' : 'It is next in its mailbox and starts once a worker has a free slot.'
}

function relatedLink({ kind, id, path }, account) {
  if (kind === 'account') return h('span', {}, 'Account ', ownerName(Number(id), account))
  const page = PAGES[kind]
  return h('a', { href: page === undefined ? path : `${page}/${encodeURIComponent(id)}` }, `${KINDS[kind]} ${id}`)
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
// Pages of related records. Other records have no page, so their link leads to the API.
const PAGES = { conversation: '/chat', document: '/documents', send: '/messages', post: '/write' }

/** Makes the links to related records, and to the chain of retries that the job belongs to. */
export function makeRelations(account) {
  const links = h('ul', { class: 'bare' })
  const related = panel('Related', {}, links)
  const list = h('ol', { class: 'bare' })
  const retries = panel('Retries', {}, list)
  const node = h('div', { class: 'columns' }, related, retries)
  const update = ({ job, links: all, chain: { retry_of, retried_by } }) => {
    related.hidden = all.length === 0
    retries.hidden = retry_of.length + retried_by.length === 0
    node.hidden = related.hidden && retries.hidden
    links.replaceChildren(...all.map((link) => h('li', {}, relatedLink(link, account))))
    const item = (id) => h('li', {}, id === job.job_id ? h('span', { 'aria-current': 'true' }, 'This job ', h('code', {}, shortId(id))) : jobLink(id, 'Job'))
    list.replaceChildren(...[...retry_of, job.job_id, ...retried_by].map(item))
  }
  return { node, update }
}

// A longer text is folded.
const SHORT_LINES = 12

/** Makes panels for the payload and the result, folded if they are long. The service has masked the secrets in both. */
export function makeContents() {
  const [payload, result] = [collapsible('Payload'), collapsible('Result')]
  const node = h('div', { class: 'columns' }, payload.node, result.node)
  const update = (details) => {
    payload.show(details.payload)
    result.show(details.job.result)
    node.hidden = payload.node.hidden && result.node.hidden
  }
  return { node, update }
}

function collapsible(title) {
  const text = h('pre', { tabindex: '0', role: 'region', 'aria-label': title })
  const node = h('details', { class: 'panel' }, h('summary', {}, title), text)
  const show = (value) => {
    node.hidden = value === null || value === undefined
    const json = JSON.stringify(value, null, 2) ?? ''
    // Setting an unchanged text would lose its scroll position and selection.
    if (text.textContent === json) return
    text.textContent = json
    if (json.split('\n').length <= SHORT_LINES) node.open = true
  }
  return { node, show }
}
