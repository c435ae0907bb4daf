// Page of exports of the account's data, and of its deletion.

import { actionButton } from '../parts/actions.js'
import { call, fetchSignInWays } from '../parts/api.js'
import { confirmAction } from '../parts/dialog.js'
import { announce, h, setText } from '../parts/dom.js'
import { formatBytes, formatDays } from '../parts/format.js'
import { FINAL_STATUSES, progressBar, waitForJob } from '../parts/jobs.js'
import { list } from '../parts/list.js'
import { section } from '../parts/states.js'
import { dateTime, deletionWarning, withoutAccounts } from './common.js'

const EXPORT = '/api/v1/auth/me/export'

export async function page({ account }) {
  const ways = await fetchSignInWays()
  return withoutAccounts(account) ?? [makeExports(), makeDeletion(ways)]
}

function makeExports() {
  const bar = progressBar('Progress of the export')
  const text = h('span', { class: 'soft figure' })
  const progress = h('div', { class: 'progress', hidden: true }, bar.node, text)
  const start = actionButton('Export my data', 'Exporting…', 'Export my data', async () => {
    const { job_id } = await call('POST', `${EXPORT}?background=true`)
    await follow(job_id)
    return 'The export is ready'
  }, true)
  const follow = async (jobId) => {
    progress.hidden = false
    setText(text, 'Waiting for its turn…')
    try {
      await waitForJob(jobId, ({ progress: done, status }) => {
        bar.update(done)
        setText(text, done?.total ? `${done.current ?? 0} of ${done.total}` : status === 'running' ? 'Packing…' : 'Waiting for its turn…')
      })
      await exports.load()
    } finally {
      progress.hidden = true
    }
  }
  const exports = list({
    title: 'Exports',
    path: EXPORT,
    note: 'An export is a zip file with everything that this account owns: documents, conversations, posts, jobs, messages, payments and more.',
    empty: 'No export yet. It takes a few seconds to a few minutes.',
    columns: [
      { name: 'Created', kind: 'name', show: ({ created_at }) => dateTime(created_at) },
      { name: 'Size', kind: 'number', show: ({ byte_size }) => formatBytes(byte_size) },
      { name: 'Kept until', kind: 'number', show: ({ expires_at }) => (expires_at === null ? null : dateTime(expires_at)) },
    ],
    buttons: () => [start],
    actions: ({ id, created_at }) => h('a', { class: 'button plain', href: `${EXPORT}/${id}`, download: `export-${created_at.slice(0, 10)}.zip`, 'aria-label': `Download the export of ${created_at.slice(0, 10)}` }, 'Download'),
  })
  exports.node.querySelector('.body').before(progress)
  const load = async () => {
    await exports.load()
    // An export that began on another page is followed here.
    const { jobs } = await call('GET', '/api/v1/jobs/search?task=accounts.export&limit=1').catch(() => ({ jobs: [] }))
    if (jobs.length > 0 && !FINAL_STATUSES.has(jobs[0].status)) follow(jobs[0].job_id).catch((error) => announce(`Export: ${error.message}`, { isBad: true }))
  }
  return { node: exports.node, load }
}

function makeDeletion({ deletion_days: days }) {
  const deletion = section({
    title: 'Delete the account',
    rows: 2,
    read: () => call('GET', '/api/v1/auth/me'),
    show: (me) => (me.deletion_at === null ? showDelete(me, days, deletion) : deletionWarning(me, restoreButton(deletion))),
  })
  return deletion
}

const showDelete = (me, days, deletion) => [
  h('p', {}, 'This deletes the account with its documents, conversations, keys and memberships, and ends its subscriptions. ', days === 0 ? 'It takes effect immediately.' : `You can change your mind for ${formatDays(days)}.`),
  h('div', { class: 'actions below' }, deleteButton(me, days, deletion)),
]

function deleteButton({ email }, days, deletion) {
  const button = actionButton('Delete this account', 'Deleting…', `Delete this account, ${email}`, async () => {
    const text = days === 0 ? 'It is deleted immediately, and nothing can restore it. Export your data first.' : `It works as before for ${formatDays(days)}. In this time you can keep it. Then it is deleted, and nothing can restore it.`
    if (!(await confirmAction(`Delete ${email}?`, text, 'Delete this account'))) return null
    await call('DELETE', '/api/v1/auth/me', { json: {} })
    if (days === 0) return location.assign('/')
    await deletion.load()
    return 'The deletion is scheduled'
  }, true)
  button.className = 'danger'
  return button
}

const restoreButton = (deletion) =>
  actionButton('Keep the account', 'Restoring…', 'Keep the account', async () => {
    await call('POST', '/api/v1/auth/me/restore')
    await deletion.load()
    return 'The account stays'
  })
