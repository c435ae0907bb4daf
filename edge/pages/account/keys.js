// Page of the account's API keys, and the list of keys that organizations have, too.

import { actionButton, button } from '../parts/actions.js'
import { call } from '../parts/api.js'
import { confirmAction, openForm } from '../parts/dialog.js'
import { h } from '../parts/dom.js'
import { list } from '../parts/list.js'
import { chip } from '../parts/table.js'
import { age, dateTime, showSecret, withoutAccounts } from './common.js'
import { describeScopes, scopesInput } from './scopes.js'

export const ROUTE = '/api/v1/auth/keys'

export const page = ({ account }) => withoutAccounts(account) ?? [
  keyList({
    path: ROUTE,
    note: 'Programs send a key instead of a password. A key acts as your account, within its scopes.',
    empty: 'You have no API keys.',
    more: ['budget'],
    actions: (key, keys) => [key.organization_id === null && button('Budget', () => changeBudget(key, keys), { label: `Budget of ${key.name}` }), deleteButton(key, keys)],
  }),
]

/**
 * Makes a list of keys. `fixed` are fields that each new key has, `more` are rare fields of their form, and `scopes` are
 * those to choose from, all by default. Further options are those of `list()`.
 */
export const keyList = ({ fixed = {}, more = [], scopes, kind = '', ...options }) =>
  list({
    title: 'API keys',
    columns: [
      { name: 'Name', kind: 'name', show: showName(fixed) },
      { name: 'Key', show: ({ hint }) => h('code', { class: 'hint', title: 'The last four characters of the key' }, `…${hint}`) },
      { name: 'Scopes', kind: 'wide', show: ({ scopes: given }) => describeScopes(given) },
      { name: 'Created', kind: 'number', isHidden: true, show: ({ created_at }) => dateTime(created_at) },
      { name: 'Last used', kind: 'number', show: ({ last_used_at }) => (last_used_at === null ? 'never' : age(last_used_at)) },
      { name: 'Expires', kind: 'number', show: ({ expires_at }) => (expires_at === null ? 'never' : Date.parse(expires_at) < Date.now() ? chip('expired', 'bad') : dateTime(expires_at)) },
    ],
    buttons: (keys) => [button('New key', () => addKey(keys, { fixed, more, scopes }), { kind })],
    actions: (key, keys) => [deleteButton(key, keys)],
    ...options,
  })

/** Names the key, and links to its organization on other pages than that of the organization. */
const showName = (fixed) => ({ name, organization_id: id }) =>
  h('span', { class: 'named' }, h('strong', {}, name), id === null || fixed.organization_id === id ? null : h('small', { class: 'soft' }, 'of ', h('a', { href: `/organizations/${id}` }, 'an organization')))

const BUDGET_FIELDS = [['day_tokens', 'Tokens a day', 'integer'], ['day_cost', 'US dollars a day', 'number'], ['month_tokens', 'Tokens a month', 'integer'], ['month_cost', 'US dollars a month', 'number']].map(([name, label, type]) => ({ name, label, type, min: 0 }))

const KEY_FIELDS = {
  name: { help: 'Such as the program that uses the key', placeholder: 'Nightly import' },
  scopes: { label: 'What it may do', help: 'Write includes read.', isPlain: true, input: scopesInput },
  expires_at: { label: 'Valid until', help: 'A key without an end is valid until you delete it.' },
  budget: { label: 'Budget for AI', fields: BUDGET_FIELDS },
}

async function addKey(keys, { fixed, more, scopes }) {
  const created = await openForm('New API key', {
    operation: `POST ${ROUTE}`,
    fields: ['name', 'scopes', 'expires_at'],
    more,
    set: scopes === undefined ? KEY_FIELDS : { ...KEY_FIELDS, scopes: { ...KEY_FIELDS.scopes, options: scopes } },
    prepare: (values) => ({ ...values, ...fixed }),
    submit: 'Create key',
    busy: 'Creating…',
  })
  if (created === null) return
  const { key, ...rest } = created
  keys.insert(rest)
  showSecret('Your new API key', 'API key', key)
}

const changeBudget = (key, keys) =>
  openForm(`Budget of ${key.name}`, {
    operation: `PATCH ${ROUTE}/{key_id}`,
    params: { key_id: key.id },
    values: key,
    set: { budget: { label: 'Limits of AI usage', fields: BUDGET_FIELDS, isPlain: true, help: 'Empty fields are without a limit. Days and months are those of UTC.' } },
    done: (changed) => {
      keys.replace(changed)
      return 'Budget saved'
    },
  })

const deleteButton = (key, keys) =>
  actionButton('Delete', 'Deleting…', `Delete ${key.name}`, async () => {
    if (!(await confirmAction(`Delete ${key.name}?`, 'Programs that send this key lose access immediately. A deleted key cannot be restored.', 'Delete key'))) return null
    await call('DELETE', `${ROUTE}/${key.id}`)
    keys.remove(key)
    return `Deleted ${key.name}`
  }, true)
