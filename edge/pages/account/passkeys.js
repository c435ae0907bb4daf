// Section of the account's passkeys.

import { actionButton, button } from '../parts/actions.js'
import { call } from '../parts/api.js'
import { confirmAction, openForm } from '../parts/dialog.js'
import { h } from '../parts/dom.js'
import { list } from '../parts/list.js'
import { createPasskey, findPasskeyProblem } from '../parts/passkeys.js'
import { chip } from '../parts/table.js'
import { age, dateTime } from './common.js'

export function makePasskeys(ways) {
  const problem = findPasskeyProblem(ways)
  return list({
    name: 'passkeys',
    title: 'Passkeys',
    path: '/api/v1/auth/passkeys',
    note: problem ?? 'A passkey signs you in with the fingerprint, face or PIN of your device, without a password and a code.',
    empty: 'You have no passkeys.',
    columns: [
      { name: 'Name', kind: 'name', show: ({ name, is_synced }) => h('span', { class: 'chips' }, h('strong', {}, name), is_synced ? chip('on several devices') : null) },
      { name: 'Created', kind: 'number', show: ({ created_at }) => dateTime(created_at) },
      { name: 'Last used', kind: 'number', show: ({ last_used_at }) => (last_used_at === null ? 'never' : age(last_used_at)) },
    ],
    buttons: (passkeys) => (problem === null ? [createButton(passkeys)] : []),
    actions: (passkey, passkeys) => [button('Rename', () => rename(passkey, passkeys), { label: `Rename ${passkey.name}` }), deleteButton(passkey, passkeys)],
  })
}

const createButton = (passkeys) =>
  actionButton('Add a passkey', 'Waiting for your device…', 'Add a passkey', async () => {
    const passkey = await createPasskey()
    passkeys.insert(passkey)
    return `Added ${passkey.name}`
  }, true)

const rename = (passkey, passkeys) =>
  openForm(`Rename ${passkey.name}`, {
    operation: 'PATCH /api/v1/auth/passkeys/{passkey_id}',
    params: { passkey_id: passkey.id },
    values: passkey,
    submit: 'Rename',
    done: (changed) => {
      passkeys.replace(changed)
      return `Renamed to ${changed.name}`
    },
  })

const deleteButton = (passkey, passkeys) =>
  actionButton('Delete', 'Deleting…', `Delete ${passkey.name}`, async () => {
    if (!(await confirmAction(`Delete ${passkey.name}?`, 'It no longer signs in to this account. Delete it on your device, too.', 'Delete passkey'))) return null
    await call('DELETE', `/api/v1/auth/passkeys/${passkey.id}`, { json: {} })
    passkeys.remove(passkey)
    return `Deleted ${passkey.name}`
  }, true)
