// Page that imports and exports posts.

import { button } from '../parts/actions.js'
import { call, fetchAccount, withQuery } from '../parts/api.js'
import { h, isBusy, panel, setBusy, setText } from '../parts/dom.js'
import { formatCount } from '../parts/format.js'
import { jobPath, progressBar, waitForJob } from '../parts/jobs.js'
import { failure } from '../parts/states.js'
import { scrollBox, table, tiles } from '../parts/table.js'

const CONFLICTS = [
  ['skip', 'Keep the existing post'],
  ['overwrite', 'Replace the existing post, which stays as a revision'],
  ['fail', 'Import nothing'],
]
// Rows of the report that are shown at first.
const SHOWN = 100

export const page = () => [importPanel(), exportPanel()]

function importPanel() {
  const file = h('input', { type: 'file', name: 'file', required: true, accept: '.md,.markdown,.mdx,.zip,.json,.xml' })
  const conflict = h('select', { name: 'on_conflict' }, ...CONFLICTS.map(([value, text]) => h('option', { value }, text)))
  const submit = h('button', { type: 'submit' }, 'Import')
  const outcome = h('div', { class: 'outcome-slot' })
  const send = async (event) => {
    event.preventDefault()
    if (isBusy(submit)) return
    setBusy(submit, 'Importing…')
    try {
      outcome.replaceChildren(...reportOf(await runImport(file.files[0], conflict.value, outcome)))
      outcome.querySelector('h3').focus()
    } catch (error) {
      outcome.replaceChildren(failure(error, () => form.requestSubmit()))
    } finally {
      submit.removeAttribute('aria-disabled')
      setText(submit, 'Import')
    }
  }
  const form = h('form', { class: 'form', onsubmit: send }, h('label', {}, 'File', file), h('label', {}, 'If a post with the same slug exists', conflict), h('div', { class: 'actions' }, submit))
  const note = 'A Markdown file, a zip archive of such files, a JSON array, or an export of Ghost (JSON) or WordPress (XML). An import is stored completely or not at all.'
  return panel('Import', {}, h('p', { class: 'soft' }, note), form, outcome)
}

/** Uploads a file, and waits for the job that imports it. Shows its progress. @throws ApiError */
async function runImport(file, onConflict, outcome) {
  const text = h('p', { class: 'soft', role: 'status' }, `Uploading ${file.name}`)
  const bar = progressBar(`Import of ${file.name}`)
  outcome.replaceChildren(text, bar.node)
  const body = new FormData()
  body.set('file', file)
  const job = await call('POST', withQuery('/api/v1/blog/import', { on_conflict: onConflict, background: true }), { body })
  setText(text, 'Waiting for a worker')
  text.after(h('p', {}, h('a', { href: jobPath(job.job_id) }, 'Show the job')))
  return waitForJob(job.job_id, ({ status, label, progress }) => {
    if (status === 'running') setText(text, label || 'Importing')
    bar.update(progress)
  })
}

const NAMES = [
  ['Created', 'created'],
  ['Updated', 'updated'],
  ['Skipped', 'skipped'],
  ['Failed', 'failed'],
]

function reportOf(result) {
  const figures = tiles(NAMES.map(([name]) => [name]))
  for (const [name, key] of NAMES) figures.set(name, formatCount(result[key]))
  figures.node.classList.add('four')
  const imported = result.created + result.updated
  const heading = h('h3', { tabindex: '-1' }, imported === 1 ? '1 post imported' : `${formatCount(imported)} posts imported`)
  const link = imported > 0 ? h('p', {}, h('a', { href: '/write' }, 'Show the posts')) : null
  return [heading, figures.node, link, problemTable(result.errors)].filter(Boolean)
}

/** Makes the table of files that made no post, with their reasons; null if there are none. */
function problemTable(errors) {
  if (errors.length === 0) return null
  const { node, body, row } = table('Files that made no post', [
    ['File', 'name'],
    ['Slug', ''],
    ['Reason', 'wide'],
  ])
  const add = (some) => body.append(...some.map(({ file, slug, message }) => row(file, slug === null ? null : h('code', {}, slug), message)))
  add(errors.slice(0, SHOWN))
  const more = button(`Show all ${formatCount(errors.length)}`, () => {
    add(errors.slice(SHOWN))
    more.remove()
  })
  return h('div', {}, h('h4', {}, 'Files that made no post'), scrollBox('Files that made no post', node), errors.length > SHOWN ? more : null)
}

function exportPanel() {
  const format = h('select', {}, h('option', { value: 'markdown' }, 'Markdown files in a zip archive'), h('option', { value: 'json' }, 'One JSON file'))
  const status = h('select', {}, h('option', { value: '' }, 'All posts'), ...['draft', 'published', 'archived'].map((value) => h('option', { value }, `Only ${value === 'draft' ? 'drafts' : `${value} posts`}`)))
  const send = async (event) => {
    event.preventDefault()
    // Renews the session, because a download cannot.
    await fetchAccount()
    location.assign(withQuery('/api/v1/blog/export', { format: format.value, status_filter: status.value }))
  }
  const form = h('form', { class: 'form', onsubmit: send }, h('label', {}, 'Format', format), h('label', {}, 'Posts', status), h('div', { class: 'actions' }, h('button', { type: 'submit' }, 'Export')))
  return panel('Export', {}, h('p', { class: 'soft' }, 'Import either format into an empty blog to get the same posts.'), form)
}
