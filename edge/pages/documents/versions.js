// Versions of a document: the ones that it supersedes, and those that supersede it.

import { actionButton, offerUndo } from '../parts/actions.js'
import { call } from '../parts/api.js'
import { announce, h } from '../parts/dom.js'
import { formatBytes, formatMinute } from '../parts/format.js'
import { chip } from '../parts/table.js'
import { pathOf } from './records.js'
import { sendFile } from './send-file.js'

// A chain of versions is read one by one.
const MAX_SHOWN = 20

async function readChain(start, next) {
  const chain = []
  for (let id = start; id !== null && chain.length < MAX_SHOWN; ) {
    const record = await call('GET', pathOf(id)).catch(() => null)
    if (record === null) break
    chain.push(record)
    id = next(record)
  }
  return chain
}

/** Makes the list of versions, which is empty if there is one only. */
export function makeVersions(record) {
  const node = h('div', { class: 'versions', hidden: true })
  const setOlder = async (id) => {
    Object.assign(record, await call('PATCH', pathOf(record.id), { json: { supersedes_id: id } }))
    await load()
  }
  const separate = actionButton('Separate', 'Separating…', 'Separate this version from the older ones', async () => {
    const older = record.supersedes_id
    await setOlder(null)
    offerUndo('Separated from the older versions', () => setOlder(older))
    return null
  }, true)
  const row = (version) => {
    const isThis = version.id === record.id
    return h('li', { class: 'line' }, isThis ? h('strong', { 'aria-current': 'true' }, version.title) : h('a', { href: `/documents/${version.id}` }, version.title), h('span', { class: 'soft' }, `${formatMinute(version.received_at)}, ${formatBytes(version.byte_size)}`), isThis && chip('this one', 'live'), isThis && record.supersedes_id !== null && separate)
  }
  const load = async () => {
    const [newer, older] = await Promise.all([readChain(record.superseded_by_id, (one) => one.superseded_by_id), readChain(record.supersedes_id, (one) => one.supersedes_id)])
    node.hidden = newer.length + older.length === 0
    const latest = newer.at(-1)
    const warning = latest === undefined ? null : h('p', { class: 'outdated' }, 'This is an older version. ', h('a', { href: `/documents/${latest.id}` }, 'Open the latest version'))
    node.replaceChildren(...[warning, h('h3', {}, 'Versions'), h('ol', { reversed: true }, ...[...newer.toReversed(), record, ...older].map(row))].filter(Boolean))
  }
  return { node, load }
}

/** Uploads a file as the next version of a document, starts reading it, and opens it. */
export async function uploadVersion(record, file) {
  announce(`Uploading ${file.name}`)
  try {
    const { record: stored } = await sendFile(file, { fields: { kind: record.kind, tags: JSON.stringify(record.tags) } })
    if (stored.id === record.id) return announce('This file is the same as the current version', { isBad: true })
    await call('PATCH', pathOf(stored.id), { json: { supersedes_id: record.id } })
    await call('POST', `${pathOf(stored.id)}/extract?background=true`)
    location.assign(`/documents/${stored.id}`)
  } catch (error) {
    announce(`Upload new version: ${error.message}`, { isBad: true })
  }
}
