// Page of a webhook endpoint and its deliveries.

import { actionButton, button } from '../parts/actions.js'
import { call } from '../parts/api.js'
import { confirmAction, openForm } from '../parts/dialog.js'
import { h } from '../parts/dom.js'
import { section } from '../parts/states.js'
import { facts } from '../parts/table.js'
import { age, dateTime, withoutAccounts } from './common.js'
import { makeDeliveries } from './deliveries.js'
import { deleteButton, editEndpoint, isOwn, nameOf, showEndpointSecret, stateChip, toggleButton } from './webhooks.js'

export function page({ account, params, setTitle }) {
  const path = `/api/v1/webhooks/${params.endpoint_id}`
  const deliveries = makeDeliveries(path)
  const endpoint = section({
    title: 'Endpoint',
    rows: 4,
    read: () => call('GET', path),
    show: (shown) => {
      setTitle(nameOf(shown))
      return showEndpoint(shown, { path, account, reload: endpoint.load, deliveries })
    },
  })
  return withoutAccounts(account) ?? [endpoint, deliveries]
}

function showEndpoint(endpoint, { path, account, reload, deliveries }) {
  const isCallback = endpoint.url === null
  const mayEdit = isOwn(endpoint, account)
  const done = () => location.assign(mayEdit ? '/account/webhooks' : `/organizations/${endpoint.organization_id}`)
  // Admins of an organization may not read the messages of other members.
  deliveries.node.hidden = !mayEdit
  const own = isCallback || !mayEdit ? [] : [button('Edit', () => editEndpoint(endpoint, reload)), testButton(path, deliveries), challengeButton(path, endpoint, deliveries), rotateButton(path, reload)]
  return [
    facts([
      ['State', stateChip(endpoint)],
      ['Events', isCallback ? null : endpoint.events.join(', ')],
      ['Receives', endpoint.scope === 'service' ? 'events of all accounts' : endpoint.account_id === account.id ? 'your events' : 'events of the member who added it'],
      ['Description', endpoint.description],
      ['Confirmed', isCallback ? null : endpoint.proved_at === null ? 'not yet; messages are sent slowly' : dateTime(endpoint.proved_at)],
      ['Failing since', endpoint.failing_since && h('span', {}, dateTime(endpoint.failing_since), ` (${endpoint.failures} attempts)`)],
      ['Paused until', endpoint.paused_until && dateTime(endpoint.paused_until)],
      ['Disabled', endpoint.disabled_at && dateTime(endpoint.disabled_at)],
      ['Secret changed', endpoint.secret_rolled_at && age(endpoint.secret_rolled_at)],
      ['Added', dateTime(endpoint.created_at)],
    ]),
    h('div', { class: 'actions below' }, ...own, (endpoint.is_active || mayEdit) && toggleButton(endpoint, reload, mayEdit), deleteButton(endpoint, done)),
  ]
}

const testButton = (path, deliveries) =>
  button('Send test event', () =>
    openForm('Send a test event', {
      operation: 'POST /api/v1/webhooks/{endpoint_id}/test',
      params: { endpoint_id: path.split('/').at(-1) },
      set: { type: { label: 'Data like an event of the kind', none: 'Only a test', isPlain: true } },
      submit: 'Send',
      done: (delivery) => {
        deliveries.insert(delivery)
        return 'The test event is on its way'
      },
    }),
  )

const challengeButton = (path, { proved_at }, deliveries) =>
  proved_at === null
    ? actionButton('Send challenge again', 'Sending…', 'Send challenge again', async () => {
        await call('POST', `${path}/challenge`)
        await deliveries.reload()
        return 'The challenge is on its way'
      }, true)
    : null

const rotateButton = (path, reload) =>
  actionButton('New secret', 'Creating…', 'Create a new secret', async () => {
    if (!(await confirmAction('Create a new secret?', 'For 24 hours the old and the new secret both sign. Then the old one ends.', 'Create secret'))) return null
    const { secret } = await call('POST', `${path}/secret`)
    showEndpointSecret(secret, 'The previous secret also signs for 24 hours.')
    await reload()
    return null
  }, true)
