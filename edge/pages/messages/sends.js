// Page of sent messages, with forms that send new ones.

import { button } from '../parts/actions.js'
import { call } from '../parts/api.js'
import { h } from '../parts/dom.js'
import { formatCount, formatDateTime } from '../parts/format.js'
import { list } from '../parts/list.js'
import { section } from '../parts/states.js'
import { chip, clamped } from '../parts/table.js'
import { compose, setupText } from './compose.js'
import { CHANNEL_NAMES, CHANNELS, STATES, stateChip } from './states.js'

export const page = ({ account }) => {
  const isAdmin = account.role === 'admin'
  let channels = null
  const readChannels = async () => (channels = await call('GET', '/api/v1/comms/status'))
  const send = async (kind, sends) => {
    // Without the states of the channels, the service itself refuses what is not set up.
    const known = channels ?? (await readChannels().catch(() => null))
    if ((await compose(kind, known?.[kind], { isAdmin })) !== null) await sends.reload()
  }
  return [
    section({ title: 'Channels', rows: 2, read: readChannels, show: (status) => showChannels(status, isAdmin) }),
    list({
      title: 'Sent messages',
      path: '/api/v1/comms/sends',
      sort: '-created_at',
      empty: 'No messages yet.',
      buttons: (sends) => CHANNELS.map(([kind, name], i) => button(`New ${name.toLowerCase()}`, () => send(kind, sends), { kind: i === 0 ? '' : 'plain' })),
      filters: [
        { name: 'channel', label: 'Channel', options: CHANNELS },
        { name: 'status', label: 'State', options: STATES },
        { name: 'from', label: 'From', type: 'datetime-local' },
        { name: 'to', label: 'Before', type: 'datetime-local' },
      ],
      columns: [
        { name: 'To', kind: 'name address', isFixed: true, show: (send) => h('a', { class: 'clamp', href: `/messages/${send.id}` }, recipientsOf(send)) },
        { name: 'Channel', kind: 'figure', show: ({ channel }) => CHANNEL_NAMES[channel] },
        { name: 'State', show: ({ status }) => stateChip(status) },
        { name: 'Template', show: ({ template }) => template && h('code', { class: 'bound' }, template) },
        { name: 'Note', kind: 'text', show: (send) => clamped(noteOf(send)) },
        { name: 'Stream', isHidden: true, show: ({ stream }) => stream },
        { name: 'Attempts', kind: 'number', isHidden: true, show: ({ requests }) => formatCount(requests) },
        { name: 'Created', kind: 'number', sort: 'created_at', show: ({ created_at }) => formatDateTime(created_at) },
      ],
    }),
  ]
}

function recipientsOf({ recipients, to }) {
  const all = recipients.length > 0 ? recipients.map(({ address }) => address) : to
  return all.length > 1 ? `${all[0]} and ${formatCount(all.length - 1)} more` : (all[0] ?? 'no recipient')
}

function noteOf({ status, send_at, next_attempt_at, detail }) {
  if (status === 'scheduled') return `Sends ${formatDateTime(send_at)}`
  if (status === 'queued' && next_attempt_at !== null) return `Tries again ${formatDateTime(next_attempt_at)}`
  return detail
}

// Without a mail server, the service writes emails to files.
const OUTBOX = 'outbox'

const channelChip = (configured, provider) => (provider === OUTBOX ? chip('not delivered', 'warn') : chip(configured ? 'ready' : 'not set up', configured ? 'good' : 'warn'))

function senderOf(provider, from, isAdmin) {
  if (provider === OUTBOX) return isAdmin ? 'Emails become files in the folder “outbox”. Set EMAIL_SMTP_URL to deliver them.' : 'Ask an admin of the service to set up a mail server.'
  return [provider && `by ${provider}`, from && `from ${from}`].filter(Boolean).join(', ')
}

/** Shows each channel with its sender, or what it lacks. */
function showChannels({ unknown_sends, ...channels }, isAdmin) {
  const rows = CHANNELS.map(([kind, name]) => [name, channels[kind]]).map(([name, { configured, provider, from, missing }]) =>
    h(
      'li',
      {},
      h('strong', {}, name),
      channelChip(configured, provider),
      configured ? h('span', { class: 'soft' }, senderOf(provider, from, isAdmin)) : setupText(missing, isAdmin),
    ),
  )
  // The number covers all accounts.
  const unknown = isAdmin && unknown_sends > 0 && h('p', { class: 'outcome warn' }, `It is unknown whether ${unknown_sends === 1 ? 'one message was' : `${formatCount(unknown_sends)} messages were`} sent. `, h('a', { href: '/messages?status=unknown' }, 'Look at them'), ' and decide.')
  return [h('ul', { class: 'channels' }, ...rows), unknown]
}
