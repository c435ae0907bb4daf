// Page of addresses that get no messages.

import { actWithUndo, button } from '../parts/actions.js'
import { call, withQuery } from '../parts/api.js'
import { h } from '../parts/dom.js'
import { formatDateTime } from '../parts/format.js'
import { list } from '../parts/list.js'
import { chip } from '../parts/table.js'
import { CHANNEL_NAMES } from './states.js'

const REASONS = {
  bounced: ['bounced', 'bad'],
  complained: ['reported as spam', 'bad'],
  unsubscribed: ['unsubscribed', ''],
  opted_out: ['opted out', ''],
}

export const page = () => [
  list({
    title: 'Suppressions',
    path: '/api/v1/comms/suppressions',
    key: ({ address, stream }) => `${address} ${stream}`,
    note: 'These addresses get no messages, because they bounced, reported spam or opted out. The provider may have a list of its own.',
    empty: 'No address is suppressed.',
    filters: [{ name: 'stream', label: 'Stream', options: ['transactional', 'broadcast'] }],
    columns: [
      { name: 'Address', kind: 'name address', isFixed: true, show: ({ address }) => h('strong', {}, address) },
      { name: 'Channel', kind: 'figure', show: ({ channel }) => CHANNEL_NAMES[channel] },
      { name: 'Stream', show: ({ channel, stream }) => (channel === 'email' ? stream : null) },
      { name: 'Reason', show: ({ reason }) => chip(...(REASONS[reason] ?? [reason])) },
      { name: 'Message', show: ({ address, send_id }) => h('a', { href: `/messages/${send_id}`, 'aria-label': `Message to ${address}` }, 'Message') },
      { name: 'Since', kind: 'number', show: ({ created_at }) => formatDateTime(created_at) },
    ],
    actions: (row, rows) => [liftButton(row, rows)],
  }),
]

const liftButton = (row, rows) =>
  button(
    'Lift',
    () =>
      actWithUndo(`Lifted the suppression of ${row.address}`, {
        run: () => call('DELETE', withQuery(`/api/v1/comms/suppressions/${encodeURIComponent(row.address)}`, { stream: row.stream })),
        hide: () => rows.remove(row),
        show: () => rows.reload(),
      }),
    { label: `Lift the suppression of ${row.address} for ${row.stream} messages` },
  )
