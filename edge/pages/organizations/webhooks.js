// Webhook endpoints of an organization.

import { actionButton, actWithUndo, button, offerUndo } from '../parts/actions.js'
import { call } from '../parts/api.js'
import { openForm } from '../parts/dialog.js'
import { h } from '../parts/dom.js'
import { formatDateTime } from '../parts/format.js'
import { list } from '../parts/list.js'
import { chip, clamped } from '../parts/table.js'
import { showSecret } from './keys.js'

export const webhookList = ({ account, org }) =>
  list({
    title: 'Webhooks',
    name: 'webhooks',
    path: `/api/v1/webhooks?organization_id=${org.id}`,
    note: 'An endpoint receives the events of the member who adds it. Owners and admins can pause and delete it.',
    empty: 'The organization has no webhooks.',
    columns: [
      { name: 'URL', kind: 'name address', isFixed: true, show: (hook) => h('a', { class: 'clamp', href: `/account/webhooks/${hook.id}` }, nameOf(hook)) },
      { name: 'State', show: stateOf },
      { name: 'Events', kind: 'text', show: ({ events }) => events.join(', ') },
      { name: 'Description', kind: 'text', show: ({ description }) => clamped(description) },
      { name: 'Created', kind: 'number', isHidden: true, show: ({ created_at }) => formatDateTime(created_at) },
    ],
    buttons: (hooks) => [button('New webhook', () => addWebhook(org, hooks))],
    actions: (hook, hooks) => [pauseButton(account, hook, hooks), deleteButton(hook, hooks)],
  })

const nameOf = ({ url }) => url ?? 'Callbacks of jobs'

function stateOf({ is_active, disabled_at, failures, proved_at }) {
  if (disabled_at !== null) return chip('disabled after failures', 'bad')
  if (!is_active) return chip('paused', 'warn')
  if (failures > 0) return chip(`${failures} failed`, 'warn')
  return proved_at === null ? chip('not confirmed') : chip('active', 'good')
}

async function addWebhook(org, hooks) {
  const created = await openForm(`New webhook of ${org.name}`, {
    operation: 'POST /api/v1/webhooks',
    fields: ['url', 'events', 'description'],
    set: { url: { label: 'URL', inputType: 'url' } },
    prepare: (values) => ({ ...values, organization_id: org.id }),
    submit: 'Add webhook',
    busy: 'Adding…',
  })
  if (created === null) return
  const { secret, ...rest } = created
  hooks.insert(rest)
  showSecret('Your new webhook', 'signing secret', secret)
}

/** Only the account that added an endpoint may activate it. Others may pause it. */
function pauseButton(account, hook, hooks) {
  const setActive = async (is_active) => hooks.replace(await call('PATCH', `/api/v1/webhooks/${hook.id}`, { json: { is_active } }))
  if (!hook.is_active && hook.account_id !== account.id) return null
  const [text, busy] = hook.is_active ? ['Pause', 'Pausing…'] : ['Resume', 'Resuming…']
  return actionButton(text, busy, `${text} ${nameOf(hook)}`, async () => {
    await setActive(!hook.is_active)
    if (!hook.is_active) return `Resumed ${nameOf(hook)}`
    if (hook.account_id !== account.id) return `Paused ${nameOf(hook)}`
    offerUndo(`Paused ${nameOf(hook)}`, () => setActive(true))
    return null
  })
}

const deleteButton = (hook, hooks) =>
  button(
    'Delete',
    () =>
      actWithUndo(`Deleted ${nameOf(hook)}`, {
        run: () => call('DELETE', `/api/v1/webhooks/${hook.id}`),
        hide: () => hooks.remove(hook),
        show: () => hooks.reload(),
      }),
    { label: `Delete ${nameOf(hook)}` },
  )
