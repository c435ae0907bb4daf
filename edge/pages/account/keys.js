// Page of the account's API keys.

import { actionButton, button } from '../parts/actions.js'
import { call } from '../parts/api.js'
import { confirmAction, openDialog, openForm } from '../parts/dialog.js'
import { copyButton, h } from '../parts/dom.js'
import { list } from '../parts/list.js'
import { chip } from '../parts/table.js'
import { age, dateTime, withoutAccounts } from './common.js'
import { describeScopes, scopesInput } from './scopes.js'

export const page = ({ account }) => withoutAccounts(account) ?? [
  list({
    title: 'API keys',
    path: '/api/v1/auth/keys',
    note: 'Programs send a key instead of a password. A key acts as your account, within its scopes.',
    empty: 'You have no API keys.',
    columns: [
      { name: 'Name', kind: 'name', show: ({ name }) => h('strong', { class: 'named' }, name) },
      { name: 'Key', show: ({ hint }) => h('code', { class: 'hint', title: 'The last four characters of the key' }, `…${hint}`) },
      { name: 'Scopes', kind: 'wide', show: ({ scopes }) => describeScopes(scopes) },
      { name: 'Created', kind: 'number', isHidden: true, show: ({ created_at }) => dateTime(created_at) },
      { name: 'Last used', kind: 'number', show: ({ last_used_at }) => (last_used_at === null ? 'never' : age(last_used_at)) },
      { name: 'Expires', kind: 'number', show: ({ expires_at }) => (expires_at === null ? 'never' : Date.parse(expires_at) < Date.now() ? chip('expired', 'bad') : dateTime(expires_at)) },
    ],
    buttons: (keys) => [button('New key', () => addKey(keys), { kind: '' })],
    actions: (key, keys) => [button('Budget', () => changeBudget(key, keys), { label: `Budget of ${key.name}` }), deleteButton(key, keys)],
  }),
]

const KEY_FIELDS = {
  name: { help: 'Such as the program that uses the key', placeholder: 'Nightly import' },
  scopes: { label: 'What it may do', help: 'Write includes read.', isPlain: true, input: scopesInput },
  expires_at: { label: 'Valid until', help: 'A key without an end is valid until you delete it.' },
  budget: { label: 'Budget for AI' },
}

async function addKey(keys) {
  const created = await openForm('New API key', {
    operation: 'POST /api/v1/auth/keys',
    fields: ['name', 'scopes', 'expires_at'],
    more: ['budget'],
    set: KEY_FIELDS,
    submit: 'Create key',
  })
  if (created === null) return
  const { key, ...rest } = created
  keys.insert(rest)
  openDialog('Your new API key', [
    h('p', {}, 'Copy the key now. It is shown only once.'),
    h('code', { class: 'secret' }, key),
    h('div', { class: 'actions' }, copyButton(key, 'API key')),
  ])
}

const changeBudget = (key, keys) =>
  openForm(`Budget of ${key.name}`, {
    operation: 'PATCH /api/v1/auth/keys/{key_id}',
    params: { key_id: key.id },
    values: key,
    set: { budget: { label: 'Limits of AI usage', isPlain: true, help: 'Empty fields are without a limit. Days and months are those of UTC.' } },
    done: (changed) => {
      keys.replace(changed)
      return 'Budget saved'
    },
  })

const deleteButton = (key, keys) =>
  actionButton('Delete', 'Deleting…', `Delete ${key.name}`, async () => {
    if (!(await confirmAction(`Delete ${key.name}?`, 'Programs that send this key lose access immediately. A deleted key cannot be restored.', 'Delete key'))) return null
    await call('DELETE', `/api/v1/auth/keys/${key.id}`)
    keys.remove(key)
    return `Deleted ${key.name}`
  }, true)
