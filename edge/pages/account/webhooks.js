// Page of the account's webhook endpoints, and the list of endpoints that the service and organizations have, too.

import { actionButton, button, offerUndo } from '../parts/actions.js'
import { call } from '../parts/api.js'
import { confirmAction, openForm } from '../parts/dialog.js'
import { h } from '../parts/dom.js'
import { list } from '../parts/list.js'
import { chip } from '../parts/table.js'
import { age, dateTime, showSecret, withoutAccounts } from './common.js'

export const ROUTE = '/api/v1/webhooks'

export const page = ({ account }) =>
  withoutAccounts(account) ?? [
    endpointList({
      account,
      title: 'Webhooks',
      path: ROUTE,
      note: 'An endpoint receives your events as requests, such as the end of a job. The secret proves that they come from here.',
      empty: 'You have no webhook endpoints.',
    }),
    account.role === 'admin' &&
      endpointList({
        account,
        title: 'Webhooks of the whole service',
        name: 'service',
        path: `${ROUTE}?scope=service`,
        note: 'These endpoints receive the events of all accounts. They belong to all admins.',
        empty: 'The service has no webhook endpoints.',
        fixed: { scope: 'service' },
        addLabel: 'Add endpoint of the service',
      }),
  ]

/**
 * Makes a list of endpoints for an account. `fixed` are fields that each new endpoint has. Further options are those of
 * `list()`.
 */
export const endpointList = ({ fixed = {}, account, addLabel = 'Add endpoint', kind = '', ...options }) =>
  list({
    columns: [
      { name: 'Address', kind: 'name', show: showAddress },
      { name: 'State', show: stateChip },
      { name: 'Events', kind: 'wide', show: ({ events }) => events.join(', ') },
      { name: 'Added', kind: 'number', isHidden: true, show: ({ created_at }) => dateTime(created_at) },
      { name: 'Failing for', kind: 'number', isHidden: true, show: ({ failing_since }) => failing_since && age(failing_since, '') },
    ],
    buttons: (endpoints) => [button('Add endpoint', () => addEndpoint(endpoints, addLabel, fixed), { kind, label: addLabel })],
    actions: (endpoint, endpoints) => [
      endpoint.url !== null && isOwn(endpoint, account) && button('Edit', () => editEndpoint(endpoint, endpoints.replace), { label: `Edit ${nameOf(endpoint)}` }),
      (endpoint.is_active || isOwn(endpoint, account)) && toggleButton(endpoint, endpoints.replace, isOwn(endpoint, account)),
      deleteButton(endpoint, () => endpoints.remove(endpoint)),
    ],
    ...options,
  })

const showAddress = (endpoint) =>
  h('span', { class: 'endpoint named' }, h('a', { class: 'clamp', href: `/account/webhooks/${endpoint.id}` }, nameOf(endpoint)), endpoint.description ? h('small', { class: 'soft clamp' }, endpoint.description) : null)

/** Returns true if the account may edit and enable an endpoint. Admins of an organization may only disable and delete it. */
export const isOwn = ({ account_id }, account) => account_id === account.id || account.role === 'admin'

/** Returns the name of an endpoint. The one of callbacks has no address of its own. */
export const nameOf = ({ url }) => url ?? 'Callbacks of jobs'

/** Makes a chip with the state of an endpoint. */
export function stateChip({ is_active, disabled_at, failing_since, paused_until, proved_at, url }) {
  if (!is_active) return disabled_at === null ? chip('disabled', 'warn') : chip('disabled after failures', 'bad')
  if (failing_since !== null) return chip('failing', 'bad')
  if (paused_until !== null && Date.parse(paused_until) > Date.now()) return chip('paused', 'warn')
  return proved_at === null && url !== null ? chip('not confirmed', 'warn') : chip('active', 'good')
}

const FIELDS = {
  url: { label: 'Address', inputType: 'url', help: 'Where your receiver listens. It begins with https.' },
  events: { label: 'Events' },
  description: { help: 'What it is for' },
}

async function addEndpoint(endpoints, title, fixed) {
  const created = await openForm(title, {
    operation: `POST ${ROUTE}`,
    fields: ['url', 'events', 'description'],
    set: FIELDS,
    submit: 'Add endpoint',
    busy: 'Adding…',
    prepare: (values) => ({ ...values, ...fixed }),
  })
  if (created === null) return
  const { secret, ...endpoint } = created
  endpoints.insert(endpoint)
  showEndpointSecret(secret, 'The first message is a challenge: echo its token, and messages are delivered at full rate.')
}

/** Shows the secret with which a receiver checks signatures. */
export const showEndpointSecret = (secret, note) => showSecret('Secret of the endpoint', 'secret', secret, h('p', { class: 'soft' }, 'Your receiver checks the signatures of messages with it. ', note))

/** Opens the form of an endpoint. `replace` receives the changed endpoint. */
export const editEndpoint = (endpoint, replace) =>
  openForm('Edit the endpoint', {
    operation: `PATCH ${ROUTE}/{endpoint_id}`,
    params: { endpoint_id: endpoint.id },
    fields: ['url', 'events', 'description'],
    set: FIELDS,
    values: endpoint,
    done: (changed) => {
      replace(changed)
      return 'Endpoint saved'
    },
  })

/** Makes the button that disables or enables an endpoint. Without `mayEnable` it offers no undo. */
export function toggleButton(endpoint, replace, mayEnable = true) {
  const set = async (is_active) => replace(await call('PATCH', `${ROUTE}/${endpoint.id}`, { json: { is_active } }))
  if (!endpoint.is_active) return actionButton('Enable', 'Enabling…', `Enable ${nameOf(endpoint)}`, () => set(true).then(() => 'Enabled. Waiting messages are sent.'))
  return actionButton('Disable', 'Disabling…', `Disable ${nameOf(endpoint)}`, async () => {
    await set(false)
    if (!mayEnable) return 'Disabled. Messages wait.'
    offerUndo('Disabled. Messages wait.', () => set(true))
    return null
  })
}

/** Makes the button that deletes an endpoint. */
export const deleteButton = (endpoint, done) =>
  actionButton('Delete', 'Deleting…', `Delete ${nameOf(endpoint)}`, async () => {
    if (!(await confirmAction('Delete this endpoint?', `${nameOf(endpoint)} gets no more messages, and its deliveries are deleted.`, 'Delete endpoint'))) return null
    await call('DELETE', `${ROUTE}/${endpoint.id}`)
    done()
    return 'Endpoint deleted'
  }, true)
