// Page of the account's deleted documents.

import { actionButton } from '../parts/actions.js'
import { call } from '../parts/api.js'
import { confirmAction } from '../parts/dialog.js'
import { announce, h } from '../parts/dom.js'
import { formatBytes, formatDateTime, showCountdown } from '../parts/format.js'
import { list } from '../parts/list.js'
import { shortTime } from '../parts/table.js'
import { nameType } from './kinds.js'
import { countOf, forEach, pathOf, restore, runBulk } from './records.js'

const WARNING = 'Files and texts are deleted immediately. Nothing can restore them.'

export const page = () => [
  list({
    title: 'Trash',
    path: '/api/v1/documents?trashed=true',
    note: 'Deleted documents stay here for some days. Then they are deleted forever.',
    empty: 'The trash is empty.',
    nameOf: ({ title }) => title,
    filters: [
      { name: 'search', label: 'Search titles and text' },
      { name: 'kind', label: 'Kind' },
      { name: 'from', label: 'From', type: 'date', isMore: true },
      { name: 'to', label: 'To', type: 'date', isMore: true },
    ],
    columns: [
      { name: 'Title', kind: 'name wide', isFixed: true, show: ({ title }) => h('strong', { class: 'title' }, title) },
      { name: 'Type', kind: 'type', show: ({ media_type }) => nameType(media_type) },
      { name: 'Size', kind: 'number', show: ({ byte_size }) => formatBytes(byte_size) },
      { name: 'Deleted', kind: 'number', show: ({ deleted_at }) => shortTime(deleted_at) },
      { name: 'Deleted forever', kind: 'number', show: ({ expires_at }) => countdown(expires_at) },
    ],
    actions: (item, trash) => [
      actionButton('Restore', 'Restoring…', `Restore ${item.title}`, async () => {
        await restore(item.id)
        trash.remove(item)
        return `Restored ${item.title}`
      }),
      actionButton('Delete forever', 'Deleting…', `Delete forever: ${item.title}`, async () => {
        if (!(await confirmAction(`Delete ${item.title} forever?`, WARNING, 'Delete forever'))) return null
        await call('DELETE', `${pathOf(item.id)}?permanent=true`)
        trash.remove(item)
        return `Deleted ${item.title} forever`
      }, true),
    ],
    bulk: [
      ['Restore', restoreAll],
      ['Delete forever', deleteAll],
    ],
  }),
]

function countdown(iso) {
  const node = h('span', { title: formatDateTime(iso) })
  showCountdown(node, iso)
  return node
}

async function restoreAll(items, trash) {
  const restored = []
  const errors = await forEach(items, async (item) => {
    await restore(item.id)
    restored.push(item)
  })
  restored.forEach(trash.remove)
  if (errors.length > 0) announce(`${countOf(errors.length)} not restored: ${errors[0].message}`, { isBad: true })
  else announce(`Restored ${countOf(restored.length)}`)
}

async function deleteAll(items, trash) {
  if (!(await confirmAction(`Delete ${countOf(items.length)} forever?`, WARNING, 'Delete forever'))) return
  const gone = await runBulk('delete', items, { permanent: true })
  items.filter(({ id }) => gone.includes(id)).forEach(trash.remove)
  if (gone.length > 0) announce(`Deleted ${countOf(gone.length)} forever`)
}
