// Rows of the monitor: each is created once for its job, queue or worker, and updated from then on.

import { call } from './api.js'
import { announce, h, keyed, say } from './dom.js'
import { brief, bytes, clock, count, since } from './format.js'

/** The class of a chip that shows a state. */
export const TONES = { done: 'good', failed: 'bad', cancelled: 'warn', running: 'live', queued: '' }

const linkTo = (job) => h('a', { class: 'job', href: `/monitor/jobs/${job.job_id}` }, job.name, h('code', {}, brief(job.job_id)))

/**
 * A button that does one thing, announces that it is done, and can be pressed again after a failure. With `next` it can be
 * pressed again after a success, too, and the focus, which a disabled button loses, goes to the button that `next` returns.
 */
export function act(text, busy, label, work, next = null) {
  const button = h('button', { class: 'plain', type: 'button', 'aria-label': label }, text)
  const ready = (to) => {
    button.disabled = false
    button.textContent = text
    // Unless somebody has moved on meanwhile.
    if ([document.body, button].includes(document.activeElement)) to.focus()
  }
  button.addEventListener('click', async () => {
    button.disabled = true
    button.textContent = busy
    try {
      announce(await work())
      if (next !== null) ready(next(button))
    } catch (error) {
      ready(button)
      announce(`${label}: ${error.message}`)
    }
  })
  return button
}

export const cancelButton = (id, name) =>
  act('Cancel', 'Cancelling…', `Cancel ${name} ${brief(id)}`, async () => {
    await call('DELETE', `/api/v1/jobs/${id}`)
    return `Cancelling ${name}`
  })

export const retryButton = (id, name, then = () => {}) =>
  act('Retry', 'Retrying…', `Retry ${name} ${brief(id)}`, async () => {
    then(await call('POST', `/api/v1/jobs/${id}/retry`))
    return `Retrying ${name}`
  })

/** A bar that shows how far along a job is, or only that it is running. */
export function progressBar() {
  const bar = h('progress', { 'aria-label': 'Progress' })
  const update = (progress) => {
    if (progress?.total) {
      bar.max = progress.total
      bar.value = progress.current ?? 0
    } else bar.removeAttribute('value')
  }
  return { node: bar, update }
}

export function runningRow(job) {
  const elapsed = h('span', { class: 'figure' })
  const attempts = h('span', { class: 'chip warn', hidden: true })
  const label = h('span', { class: 'label' })
  const steps = h('span', { class: 'figure soft' })
  const worker = h('span', { class: 'soft' })
  const bar = progressBar()
  const button = cancelButton(job.job_id, job.name)
  const node = h(
    'li',
    {},
    h('div', { class: 'line' }, linkTo(job), h('span', { class: 'chip' }, job.queue), attempts, h('span', { class: 'gap' }), elapsed, button),
    bar.node,
    h('div', { class: 'line under' }, label, h('span', { class: 'gap' }), steps, worker),
  )
  const update = ({ attempts: n, label: text, progress, started_at, worker: name, cancelling }) => {
    since(elapsed, started_at)
    attempts.hidden = n < 2
    say(attempts, `attempt ${n}`)
    say(label, cancelling ? `Stopping · ${text}` : text)
    say(steps, progress?.total ? `${count(progress.current ?? 0)} / ${count(progress.total)}` : '')
    say(worker, name ?? '')
    bar.update(progress)
    if (cancelling) {
      button.disabled = true
      say(button, 'Cancelling…')
    }
  }
  return { node, update }
}

export function waitingRow(job) {
  const waits = h('span', { class: 'figure' })
  const node = h(
    'li',
    {},
    h('div', { class: 'line' }, linkTo(job), h('span', { class: 'chip' }, job.queue), h('span', { class: 'gap' }), waits, cancelButton(job.job_id, job.name)),
  )
  const update = ({ created_at, due_at }) => {
    if (due_at === null) return since(waits, created_at)
    delete waits.dataset.since
    say(waits, `due ${clock(due_at)}`)
  }
  return { node, update }
}

/** Rows of the workers' table. */
export const workerRow = (row) => (worker) => {
  const parts = Array.from({ length: 8 }, () => h('span', {}))
  const [name, state, running, threads, memory, up, queues, action] = parts
  let drained = null
  const update = (now) => {
    say(name, now.name)
    say(state, now.alive ? (now.drained ? 'drained' : 'alive') : 'lost')
    state.className = `chip ${now.alive ? (now.drained ? 'warn' : 'good') : 'bad'}`
    say(running, count(now.running))
    say(threads, `${count(now.threads)}, ${count(now.busy)}`)
    say(memory, now.memory_bytes === 0 ? '–' : bytes(now.memory_bytes))
    since(up, now.started_at)
    keyed(queues, now.queues, (queue) => queue, (queue) => ({ node: h('span', { class: 'chip' }, queue), update: () => {} }))
    if (drained === now.drained) return
    drained = now.drained
    action.replaceChildren(
      drained
        ? steer('Resume', 'Resuming…', 'starts jobs again', `/api/v1/workers/${worker.id}/resume`)
        : steer('Drain', 'Draining…', 'starts no more jobs', `/api/v1/workers/${worker.id}/drain`),
    )
  }
  const steer = (text, busy, done, path) =>
    act(text, busy, `${text} ${worker.name}`, async () => {
      await call('POST', path)
      return `${worker.name} ${done}`
    })
  queues.className = 'chips'
  return { node: row(...parts), update }
}
