// Rows of the monitor: each is created once for its job, queue or worker, and updated from then on.

import { call } from './api.js'
import { announce, h, isBusy, keyed, say, setBusy } from './dom.js'
import { brief, bytes, clock, count, since } from './format.js'

/** The class of a chip that shows a state. */
export const TONES = { done: 'good', failed: 'bad', cancelled: 'warn', running: 'live', queued: '' }

const linkTo = (job) => h('a', { class: 'job', href: `/monitor/jobs/${job.job_id}` }, job.name, h('code', {}, brief(job.job_id)))

/**
 * A button that does one thing and announces what has been done, if anything. It can be pressed again after a failure; after a
 * success it says `busy` until it is drawn anew, unless it can be pressed `again`.
 */
export function act(text, busy, label, work, again = false) {
  const button = h('button', { class: 'plain', type: 'button', 'aria-label': label }, text)
  const ready = () => {
    button.removeAttribute('aria-disabled')
    say(button, text)
  }
  // A key that is held down presses once: the focus may be at the opposite button by then.
  button.addEventListener('keydown', (event) => event.repeat && event.preventDefault())
  button.addEventListener('click', async () => {
    if (isBusy(button)) return
    setBusy(button, busy)
    try {
      const done = await work()
      if (done !== null) announce(done)
      if (again) ready()
    } catch (error) {
      ready()
      announce(`${label}: ${error.message}`)
    }
  })
  return button
}

/** The place of a button that depends on a state: `make` gives another one when that has changed. */
export function actOn(make) {
  const node = h('span', {})
  let shown
  const update = (state) => {
    if (state === shown) return
    shown = state
    node.replaceChildren(make(state))
  }
  return { node, update }
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
    if (cancelling) setBusy(button, 'Cancelling…')
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
  const parts = Array.from({ length: 7 }, () => h('span', {}))
  const [name, state, running, threads, memory, up, queues] = parts
  const action = actOn((isDrained) =>
    isDrained
      ? steer('Resume', 'Resuming…', 'starts jobs again', `/api/v1/workers/${worker.id}/resume`)
      : steer('Drain', 'Draining…', 'starts no more jobs', `/api/v1/workers/${worker.id}/drain`),
  )
  const update = (now) => {
    say(name, now.name)
    say(state, now.alive ? (now.drained ? 'drained' : 'alive') : 'lost')
    state.className = `chip ${now.alive ? (now.drained ? 'warn' : 'good') : 'bad'}`
    say(running, count(now.running))
    say(threads, `${count(now.threads)}, ${count(now.busy)}`)
    say(memory, now.memory_bytes === 0 ? '–' : bytes(now.memory_bytes))
    since(up, now.started_at)
    keyed(queues, now.queues, (queue) => queue, (queue) => ({ node: h('span', { class: 'chip' }, queue), update: () => {} }))
    action.update(now.drained)
  }
  const steer = (text, busy, done, path) =>
    act(text, busy, `${text} ${worker.name}`, async () => {
      await call('POST', path)
      return `${worker.name} ${done}`
    })
  queues.className = 'chips'
  return { node: row(...parts, action.node), update }
}
