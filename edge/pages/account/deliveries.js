// List of the deliveries of a webhook endpoint, and a dialog with the request and the answers of one.

import { actionButton, button } from '../parts/actions.js'
import { call } from '../parts/api.js'
import { openDialog } from '../parts/dialog.js'
import { copyButton, h } from '../parts/dom.js'
import { formatDuration } from '../parts/format.js'
import { list } from '../parts/list.js'
import { chip, facts } from '../parts/table.js'
import { age, dateTime } from './common.js'

const TONES = { pending: 'live', delivered: 'good', failed: 'bad' }
// Waiting deliveries are read again, because no stream reports them.
const WAIT_MS = 1500
const MAX_WAITS = 40

const statusChip = ({ status }) => chip(status === 'pending' ? 'waiting' : status, TONES[status])
const nameOf = ({ type, created_at }) => `${type} of ${created_at.slice(0, 19).replace('T', ' ')}`

/** Makes the list. `path` is that of the endpoint. */
export function makeDeliveries(path) {
  let waits = 0
  let timer = null
  const deliveries = list({
    title: 'Deliveries',
    path: `${path}/deliveries`,
    empty: 'Nothing was sent yet. Send a test event to try the endpoint.',
    filters: [{ name: 'status', label: 'State', options: [['pending', 'Waiting'], ['delivered', 'Delivered'], ['failed', 'Failed']] }],
    columns: [
      { name: 'Event', kind: 'name', show: ({ type }) => h('strong', { class: 'named' }, type) },
      { name: 'State', show: statusChip },
      { name: 'Answer', kind: 'wide', show: ({ last_answer }) => last_answer && answerText(last_answer) },
      { name: 'Attempts', kind: 'number', show: ({ attempts }) => String(attempts) },
      { name: 'Created', kind: 'number', show: ({ created_at }) => dateTime(created_at) },
      { name: 'Next attempt', kind: 'number', show: ({ status, due_at }) => (status === 'pending' && due_at !== null ? dateTime(due_at) : null) },
      { name: 'Message', isHidden: true, show: ({ message_id }) => h('code', {}, message_id) },
      { name: 'Ended', kind: 'number', isHidden: true, show: ({ ended_at }) => ended_at && age(ended_at) },
    ],
    actions: (delivery, api) => [button('Details', () => showDelivery(path, delivery, api), { label: `Details of ${nameOf(delivery)}` }), resendButton(path, delivery, api)],
    onRead: (items) => schedule(items),
  })
  const schedule = (items) => {
    clearTimeout(timer)
    const isFresh = ({ status, attempts }) => status === 'pending' && attempts === 0
    if (items.some(isFresh) && ++waits < MAX_WAITS) timer = setTimeout(refresh, WAIT_MS)
    else waits = 0
  }
  // Reads only what may have changed, so that rows and focus stay.
  const refresh = async () => {
    const waiting = deliveries.items().filter(({ status }) => status === 'pending').slice(0, 5)
    const changed = await Promise.all(waiting.map(({ id }) => call('GET', `${path}/deliveries/${id}`).catch(() => null)))
    for (const delivery of changed) if (delivery !== null && delivery.status + delivery.attempts !== 'pending0') deliveries.replace(delivery)
    schedule(deliveries.items())
  }
  return { ...deliveries, insert: (delivery) => (deliveries.insert(delivery), schedule([delivery])) }
}

const answerText = ({ status, ms, error }) => (error !== null ? error : `${status} after ${formatDuration(ms)}`)

const resendButton = (path, delivery, deliveries) =>
  delivery.status === 'pending'
    ? null
    : actionButton('Send again', 'Sending…', `Send again: ${nameOf(delivery)}`, async () => {
        deliveries.replace(await call('POST', `${path}/deliveries/${delivery.id}/send`))
        return 'The message is on its way again'
      })

async function showDelivery(path, { id }, deliveries) {
  const delivery = await call('GET', `${path}/deliveries/${id}`)
  const text = pretty(delivery.body)
  const answers = delivery.answers.map((answer) =>
    h('li', {}, dateTime(answer.at), ' ', chip(answer.status === null ? 'no answer' : String(answer.status), answer.status >= 200 && answer.status < 300 ? 'good' : 'bad'), ` after ${formatDuration(answer.ms)}`, answer.error && h('p', { class: 'bad' }, answer.error), answer.body ? h('pre', { tabindex: '0' }, answer.body) : null),
  )
  const again = resendButton(path, delivery, { replace: (changed) => (deliveries.replace(changed), node.close()) })
  const { node } = openDialog(
    delivery.type,
    [
      facts([
        ['State', statusChip(delivery)],
        ['Message', h('code', {}, delivery.message_id)],
        ['Address', delivery.url],
        ['Created', dateTime(delivery.created_at)],
        ['Next attempt', delivery.status === 'pending' && delivery.due_at !== null ? dateTime(delivery.due_at) : null],
      ]),
      h('h3', {}, 'Request'),
      h('pre', { tabindex: '0' }, text),
      h('h3', {}, answers.length === 1 ? 'Answer' : 'Answers'),
      answers.length === 0 ? h('p', { class: 'soft' }, 'No attempt was made yet.') : h('ol', { class: 'attempts' }, ...answers),
      h('div', { class: 'actions end' }, copyButton(text, 'request'), again),
    ],
    { isWide: true },
  )
}

/** Indents JSON; returns other texts as they are. */
function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
