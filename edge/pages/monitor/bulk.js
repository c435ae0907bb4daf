// What is done to all jobs of a filter at once.

import { call } from './api.js'
import { h } from './dom.js'
import { count } from './format.js'
import { act } from './tables.js'

/** The page of the jobs of a filter. */
export const linkToJobs = (filter) => `/monitor/jobs?${new URLSearchParams(filter)}`

const WORDS = {
  retry: ['Retry all', 'Retry them'],
  cancel: ['Cancel all', 'Cancel them'],
  delete: ['Delete all', 'Delete them'],
}

/** A button that asks, and then has a job do it, to whose page it leads. `filterNow` may be a function. */
export function bulkButton(action, filterNow, label) {
  const [text, sure] = WORDS[action]
  const work = async () => {
    const filter = typeof filterNow === 'function' ? filterNow() : filterNow
    const named = Object.entries(filter).map(([name, value]) => `${name} ${value}`)
    const which = named.length === 0 ? 'Of all jobs that there are.' : `Of all jobs with ${named.join(', ')}.`
    if (!(await confirmed(label, `${which} At most ${count(100_000)} of them, as one job whose page shows how far it is.`, sure))) return null
    const { job_id } = await call('POST', '/api/v1/jobs/bulk', { json: { action, filter } })
    location.assign(`/monitor/jobs/${job_id}`)
    return null
  }
  return act(text, text, label, work, true)
}

/** Asks in a dialog; whether the answer is yes. */
function confirmed(title, text, sure) {
  return new Promise((resolve) => {
    const yes = h('button', { value: 'yes' }, sure)
    const no = h('button', { class: 'plain', value: 'no' }, 'Leave them')
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
