// API keys of an organization.

import { actionButton, button } from '../parts/actions.js'
import { call } from '../parts/api.js'
import { confirmAction, openDialog, openForm } from '../parts/dialog.js'
import { copyButton, h } from '../parts/dom.js'
import { formatDateTime, showAge } from '../parts/format.js'
import { list } from '../parts/list.js'
import { chip } from '../parts/table.js'

// A key of an organization reaches only these areas.
const SCOPES = ['organizations:read', 'organizations:write', 'webhooks:read', 'webhooks:write', 'worker-queues:read', 'worker-queues:write', 'queues:work', 'accounts:read']

export const keyList = ({ org }) =>
  list({
    title: 'API keys',
    name: 'keys',
    path: `/api/v1/auth/keys?organization_id=${org.id}`,
    note: 'A key of the organization reaches only its members, invites, webhooks, worker queues and audit trail. It ends when its creator leaves.',
    empty: 'The organization has no API keys.',
    columns: [
      { name: 'Name', kind: 'name', show: ({ name }) => h('strong', {}, name) },
      { name: 'Key', show: ({ hint }) => h('code', {}, hint) },
      { name: 'Scopes', kind: 'wide', show: ({ scopes }) => scopes.join(', ') },
      { name: 'Created', kind: 'number', show: ({ created_at }) => formatDateTime(created_at) },
      { name: 'Last used', kind: 'number', show: ({ last_used_at }) => (last_used_at === null ? 'never' : age(last_used_at)) },
      { name: 'Expires', kind: 'number', show: ({ expires_at }) => (expires_at === null ? 'never' : expiry(expires_at)) },
    ],
    buttons: (keys) => [button('New key', () => addKey(org, keys))],
    actions: (key, keys) => [deleteButton(key, keys)],
  })

function age(iso) {
  const node = h('span', {})
  showAge(node, iso, ' ago')
  return node
}

const expiry = (iso) => (Date.parse(iso) < Date.now() ? chip('expired', 'warn') : formatDateTime(iso))

async function addKey(org, keys) {
  const created = await openForm(`New API key of ${org.name}`, {
    operation: 'POST /api/v1/auth/keys',
    fields: ['name', 'scopes', 'expires_at'],
    set: { scopes: { options: SCOPES } },
    prepare: (values) => ({ ...values, organization_id: org.id }),
    submit: 'Create key',
    busy: 'Creating…',
  })
  if (created === null) return
  const { key, ...rest } = created
  keys.insert(rest)
  showSecret('Your new API key', 'API key', key)
}

/** Shows a secret that the service shows only once. */
export const showSecret = (title, name, secret) =>
  openDialog(title, [h('p', {}, `Copy the ${name} now. It is shown only once.`), h('p', {}, h('code', {}, secret)), h('div', { class: 'actions' }, copyButton(secret, name))])

const deleteButton = (key, keys) =>
  actionButton('Delete', 'Deleting…', `Delete ${key.name}`, async () => {
    if (!(await confirmAction(`Delete ${key.name}?`, 'Programs that send this key lose access immediately. A deleted key cannot be restored.', 'Delete key'))) return null
    await call('DELETE', `/api/v1/auth/keys/${key.id}`)
    keys.remove(key)
    return `Deleted ${key.name}`
  }, true)
