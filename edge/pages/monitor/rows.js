// Rows of the monitor's lists. Creates each row once for its job or worker, and then updates it.

import { actionButton, buttonByState } from '../parts/actions.js'
import { call } from '../parts/api.js'
import { h, reconcile, setBusy, setText } from '../parts/dom.js'
import { formatBytes, formatCount, formatShort, shortId, showAge } from '../parts/format.js'
import { cancelButton, jobPath, progressBar } from '../parts/jobs.js'

const jobLink = (job) => h('a', { class: 'job', href: jobPath(job.job_id) }, job.name, h('code', {}, shortId(job.job_id)))

export function runningRow(job) {
  const elapsed = h('span', { class: 'figure' })
  const attempts = h('span', { class: 'chip warn', hidden: true })
  const label = h('span', { class: 'label' })
  const steps = h('span', { class: 'figure soft' })
  const worker = h('span', { class: 'soft' })
  const bar = progressBar(`Progress of ${job.name} ${shortId(job.job_id)}`)
  const button = cancelButton(job.job_id, job.name)
  const node = h(
    'li',
    {},
    h('div', { class: 'line' }, jobLink(job), h('span', { class: 'chip' }, job.queue), attempts, h('span', { class: 'gap' }), elapsed, button),
    bar.node,
    h('div', { class: 'line under' }, label, h('span', { class: 'gap' }), steps, worker),
  )
  const update = ({ attempts: n, label: text, progress, started_at, worker: name, cancelling }) => {
    showAge(elapsed, started_at)
    attempts.hidden = n < 2
    setText(attempts, `attempt ${n}`)
    setText(label, cancelling ? `Cancelling · ${text}` : text)
    setText(steps, progress?.total ? `${formatCount(progress.current ?? 0)} / ${formatCount(progress.total)}` : '')
    setText(worker, name ?? '')
    bar.update(progress)
    if (cancelling) setBusy(button, 'Cancelling…')
  }
  return { node, update }
}

export function queuedRow(job) {
  const waits = h('span', { class: 'figure' })
  const node = h(
    'li',
    {},
    h('div', { class: 'line' }, jobLink(job), h('span', { class: 'chip' }, job.queue), h('span', { class: 'gap' }), waits, cancelButton(job.job_id, job.name)),
  )
  const update = ({ created_at, due_at }) => {
    if (due_at === null) return showAge(waits, created_at)
    delete waits.dataset.since
    setText(waits, `due ${formatShort(due_at)}`)
  }
  return { node, update }
}

/** Makes the row of a job that waits for others. */
export function waitingRow(job) {
  const [label, waits] = [h('span', { class: 'soft' }), h('span', { class: 'figure' })]
  const node = h(
    'li',
    {},
    h(
      'div',
      { class: 'line' },
      jobLink(job),
      h('span', { class: 'chip' }, job.queue),
      label,
      h('span', { class: 'gap' }),
      waits,
      cancelButton(job.job_id, job.name),
    ),
  )
  const update = ({ created_at, label: text, waits_for }) => {
    showAge(waits, created_at)
    setText(label, text === '' ? `for ${formatCount(waits_for)} ${waits_for === 1 ? 'job' : 'jobs'}` : text)
  }
  return { node, update }
}

// Chips of queues in a row; the others are in the title.
const MAX_CHIPS = 6

/** Returns a function that makes the rows of the worker table. The service does not know the threads of an HTTP worker. */
export const workerRow = (row) => (worker) => {
  const parts = Array.from({ length: 6 }, () => h('span', {}))
  const [state, running, threads, memory, up, queues] = parts
  const name = workerName(worker)
  const action = buttonByState((isDrained) =>
    isDrained
      ? controlButton('Resume', 'Resuming…', 'claims jobs again', `/api/v1/workers/${worker.id}/resume`)
      : controlButton('Drain', 'Draining…', 'claims no more jobs', `/api/v1/workers/${worker.id}/drain`),
  )
  const update = (now) => {
    name.update(now)
    setText(state, now.alive ? (now.drained ? 'drained' : 'alive') : 'lost')
    state.className = `chip ${now.alive ? (now.drained ? 'warn' : 'good') : 'bad'}`
    setText(running, formatCount(now.running))
    setText(threads, now.threads === null ? '–' : `${formatCount(now.busy)} of ${formatCount(now.threads)}`)
    setText(memory, now.memory_bytes ? formatBytes(now.memory_bytes) : '–')
    showAge(up, now.started_at)
    showQueues(queues, now.queues)
    action.update(now.drained)
  }
  const controlButton = (text, busy, done, path) =>
    actionButton(text, busy, `${text} ${worker.name}`, async () => {
      await call('POST', path)
      return `${worker.name} ${done}`
    })
  queues.className = 'chips'
  return { node: row(name.node, ...parts, action.node), update }
}

function showQueues(node, names) {
  const shown = names.length > MAX_CHIPS + 1 ? [...names.slice(0, MAX_CHIPS), `and ${names.length - MAX_CHIPS} more`] : names
  node.title = names.join(', ')
  reconcile(
    node,
    shown,
    (name) => name,
    (name) => ({ node: h('span', { class: 'chip' }, name), update: () => {} }),
  )
}

/** Makes the name of a worker, above the language, version and host of an HTTP worker. */
function workerName({ queue }) {
  const name = h('span', {})
  if (queue === null) return { node: name, update: (now) => setText(name, now.name) }
  const about = h('span', { class: 'soft' })
  const update = (now) => {
    setText(name, now.name)
    const language = [now.language, now.version].filter(Boolean).join(' ')
    setText(about, ['HTTP', language, now.host].filter(Boolean).join(' · '))
    // The cell shows the beginning of long texts.
    name.title = now.name
    about.title = about.textContent
  }
  return { node: h('span', { class: 'stack long' }, name, about), update }
}
