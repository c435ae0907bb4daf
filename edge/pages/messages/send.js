// Page of a message: its state, its recipients and its attempts.

import { actionButton, buttonByState } from '../parts/actions.js'
import { call } from '../parts/api.js'
import { confirmAction } from '../parts/dialog.js'
import { h } from '../parts/dom.js'
import { formatBytes, formatCount, formatDateTime } from '../parts/format.js'
import { jobPath } from '../parts/jobs.js'
import { section } from '../parts/states.js'
import { subscribe } from '../parts/streams.js'
import { facts, scrollBox, table } from '../parts/table.js'
import { CHANNEL_NAMES, isCancellable, isOpen, STATE_HELP, stateChip } from './states.js'

export function page({ params, setTitle }) {
  const path = `/api/v1/comms/sends/${encodeURIComponent(params.send_id)}`
  const cancel = buttonByState((canCancel) => (canCancel ? cancelButton(path, () => reload()) : ''))
  let reading = null
  const read = () => (reading ??= call('GET', path))
  let stop = null
  const state = section({
    title: 'State',
    rows: 4,
    read,
    actions: [cancel.node],
    show: (send) => {
      setTitle(`${CHANNEL_NAMES[send.channel]} to ${send.to[0] ?? 'nobody'}`)
      cancel.update(isCancellable(send))
      // Each frame of the job may mean a new state of the message.
      if (isOpen(send)) stop ??= subscribe(`job:${send.job_id}`, { status: ({ status }) => status !== 'queued' && reload() })
      return [h('p', { class: 'state' }, stateChip(send.status), h('span', {}, STATE_HELP[send.status] ?? '')), send.detail && h('p', { class: 'text' }, send.detail), factsOf(send)]
    },
  })
  const recipients = section({ title: 'Recipients', read, show: showRecipients, empty: 'This message has no recipients.' })
  const attachments = section({
    title: 'Attachments',
    rows: 1,
    read,
    show: (send) => {
      attachments.node.hidden = send.attachments.length === 0
      return showAttachments(send)
    },
  })
  const parts = [state, recipients, attachments]
  async function reload() {
    reading = null
    await Promise.all(parts.map((part) => part.load()))
    if (!isOpen(state.data() ?? {})) stop?.()
  }
  // A failed reading is repeated by the button "Try again".
  const load = (part) => () => part.load().then(() => (part.data() === undefined ? (reading = null) : undefined))
  return [...parts.map((part) => ({ node: part.node, load: load(part) }))]
}

const cancelButton = (path, done) =>
  actionButton('Cancel message', 'Cancelling…', 'Cancel message', async () => {
    if (!(await confirmAction('Cancel this message?', 'It is never sent. You can write it again.', 'Cancel message'))) return null
    await call('DELETE', path)
    await done()
    return 'The message is cancelled'
  }, true)

const factsOf = (send) =>
  facts([
    ['Channel', CHANNEL_NAMES[send.channel]],
    ['Stream', send.channel === 'email' ? send.stream : null],
    ['Template', send.template && h('code', {}, send.template)],
    ['Created', formatDateTime(send.created_at)],
    ['Scheduled for', send.send_at && formatDateTime(send.send_at)],
    ['Next attempt', send.next_attempt_at && formatDateTime(send.next_attempt_at)],
    ['Attempts', formatCount(send.requests)],
    ['Last attempt', send.requested_at && formatDateTime(send.requested_at)],
    ['Settled', send.settled_at && formatDateTime(send.settled_at)],
    ["Provider's state", send.provider_status],
    ["Provider's ID", send.provider_id && h('code', {}, send.provider_id)],
    ['Job', h('a', { href: jobPath(send.job_id) }, 'Log and attempts')],
  ])

function showRecipients({ recipients, to, status }) {
  const rows = recipients.length > 0 ? recipients : to.map((address) => ({ address, status, detail: null }))
  if (rows.length === 0) return null
  const { node, body, row } = table('Recipients', [['Address', 'name'], ['State', ''], ['Reason', 'text']])
  body.append(...rows.map((one) => row(one.address, stateChip(one.status), one.detail)))
  return scrollBox('Recipients', node)
}

function showAttachments({ attachments }) {
  const { node, body, row } = table('Attachments', [['File', 'name'], ['Type', ''], ['Size', 'number']])
  body.append(...attachments.map(({ document_id, filename, media_type, byte_size }) => row(h('a', { href: `/documents/${document_id}` }, filename), media_type, formatBytes(byte_size))))
  return scrollBox('Attachments', node)
}
