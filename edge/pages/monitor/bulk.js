// Buttons for bulk actions on all jobs that match a filter.

import { call } from './api.js'
import { h } from './dom.js'
import { formatCount } from './format.js'
import { actionButton } from './tables.js'

/** Returns the path of the job list with a filter. */
export const jobsPath = (filter) => `/monitor/jobs?${new URLSearchParams(filter)}`

const LABELS = {
  retry: ['Retry all', 'Retry jobs'],
  cancel: ['Cancel all', 'Cancel jobs'],
  delete: ['Delete all', 'Delete jobs'],
}

/**
 * Makes a button that asks for confirmation, starts the job of the action and opens that job's page. `filterOrGetter`
 * is a filter, or a function that returns the current one.
 */
export function bulkButton(action, filterOrGetter, label) {
  const [text, confirmLabel] = LABELS[action]
  const run = async () => {
    const filter = typeof filterOrGetter === 'function' ? filterOrGetter() : filterOrGetter
    const conditions = Object.entries(filter).map(([name, value]) => `${name} ${value}`)
    const scope = conditions.length === 0 ? 'This applies to all jobs' : `This applies to all jobs with ${conditions.join(', ')}`
    if (!(await askConfirmation(label, `${scope}, at most ${formatCount(100_000)}. One job does it; its page shows the progress.`, confirmLabel))) return null
    const { job_id } = await call('POST', '/api/v1/jobs/bulk', { json: { action, filter } })
    location.assign(`/monitor/jobs/${job_id}`)
    return null
  }
  return actionButton(text, text, label, run, true)
}

/** Asks in a dialog. Resolves to true if the user confirms. */
function askConfirmation(title, text, confirmLabel) {
  return new Promise((resolve) => {
    const yes = h('button', { value: 'yes' }, confirmLabel)
    const no = h('button', { class: 'plain', value: 'no' }, 'Go back')
    const dialog = h('dialog', { 'aria-labelledby': 'ask' }, h('form', { method: 'dialog' }, h('h2', { id: 'ask' }, title), h('p', {}, text), h('div', { class: 'actions' }, yes, no)))
    dialog.addEventListener('close', () => {
      dialog.remove()
      resolve(dialog.returnValue === 'yes')
    })
    document.body.append(dialog)
    dialog.showModal()
    no.focus()
  })
}
