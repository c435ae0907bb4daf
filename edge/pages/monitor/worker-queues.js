// Page of worker queues, whose jobs run on workers of the account, with their tasks, limits and workers.

import { actionButton, button } from '../parts/actions.js'
import { call } from '../parts/api.js'
import { confirmAction, openDialog, openForm } from '../parts/dialog.js'
import { announce, copyButton, h } from '../parts/dom.js'
import { formatCount, formatDateTime } from '../parts/format.js'
import { list } from '../parts/list.js'
import { chip } from '../parts/table.js'
import { jobsPath } from './bulk.js'
import { ownerName } from './owners.js'
import { openTasks } from './worker-tasks.js'

const PATH = '/api/v1/worker-queues'

export function page({ account }) {
  const isAdmin = account.role === 'admin'
  return [
    list({
      title: 'Worker queues',
      path: PATH,
      key: ({ name }) => name,
      note: h(
        'span',
        {},
        'Jobs of these queues run on your own machines: workers claim them over HTTP, or the service sends them to an endpoint. ',
        h('a', { href: '/docs#tag/worker-queues' }, 'How to write a worker'),
      ),
      empty: 'You have no worker queues.',
      columns: [
        { name: 'Queue', kind: 'name', show: (queue) => nameCell(queue, account, isAdmin) },
        { name: 'Queued', kind: 'number', isFixed: true, show: ({ name, queued }) => countLink(name, 'queued', queued) },
        { name: 'Running', kind: 'number', isFixed: true, show: ({ name, running }) => countLink(name, 'running', running) },
        { name: 'Waiting', kind: 'number', isFixed: true, show: ({ name, waiting }) => countLink(name, 'waiting', waiting) },
        { name: 'Workers', show: workersCell },
        {
          name: 'Tasks',
          kind: 'wide',
          show: ({ tasks, open }) =>
            h(
              'span',
              { class: 'chips tasks' },
              ...tasks.slice(0, 4).map(({ name }) => chip(name)),
              tasks.length > 4 ? chip(`and ${formatCount(tasks.length - 4)} more`) : null,
              open ? chip('any task') : null,
            ),
        },
        { name: 'Changed', kind: 'number', isHidden: true, show: ({ updated_at }) => formatDateTime(updated_at) },
        { name: 'Created', kind: 'number', isHidden: true, show: ({ created_at }) => formatDateTime(created_at) },
      ],
      actions: (queue, queues) => actionsOf(queue, queues, isAdmin),
      buttons: (queues) => [button('New worker queue', () => addQueue(queues), { kind: '' })],
    }),
  ]
}

function nameCell({ name, description, account_id, organization_id, paused_at }, account, isAdmin) {
  const owner =
    organization_id !== null
      ? h('a', { href: `/organizations/${organization_id}` }, 'of an organization')
      : isAdmin && account_id !== null && account_id !== account.id
        ? ownerName(account_id, account)
        : null
  return h(
    'span',
    { class: 'stack' },
    h('span', { class: 'chips' }, h('a', { class: 'job', href: jobsPath({ queue: name }) }, name), paused_at === null ? null : chip('paused', 'warn')),
    description ? h('span', { class: 'soft clamp', title: description }, description) : null,
    owner === null ? null : h('span', { class: 'soft' }, owner),
  )
}

const countLink = (queue, state, n) =>
  n === 0
    ? h('span', { class: 'zero' }, '0')
    : h('a', { href: jobsPath({ queue, status: state }), 'aria-label': `${formatCount(n)} ${state} jobs of ${queue}` }, formatCount(n))

function workersCell({ endpoint, workers }) {
  if (endpoint !== null)
    return h('span', {}, 'Endpoint ', h('code', {}, endpoint.url), h('span', { class: 'soft' }, `, ${formatCount(endpoint.concurrency)} at a time`))
  return workers === 0 ? h('span', { class: 'soft' }, 'none') : `${formatCount(workers)} connected`
}

function actionsOf(queue, queues, isAdmin) {
  const { name, paused_at } = queue
  const refresh = async () => queues.replace(await call('GET', `${PATH}/${name}`))
  const control = (text, busy, path, done) =>
    actionButton(
      text,
      busy,
      `${text} ${name}`,
      async () => {
        await call('POST', path)
        await refresh()
        return `${name} is ${done}`
      },
      true,
    )
  return [
    button('Tasks', () => openTasks(queue, refresh), { label: `Tasks of ${name}` }),
    button('Edit', () => editQueue(queue, queues), { label: `Edit ${name}` }),
    // Only admins of the service may pause and limit queues.
    isAdmin && (paused_at === null ? control('Pause', 'Pausing…', `/api/v1/queues/${name}/pause`, 'paused') : control('Resume', 'Resuming…', `/api/v1/queues/${name}/resume`, 'resumed')),
    isAdmin && button('Limit', () => limitQueue(queue), { label: `Limit of ${name}` }),
    deleteButton(queue, queues),
  ]
}

const deleteButton = (queue, queues) =>
  actionButton(
    'Delete',
    'Deleting…',
    `Delete ${queue.name}`,
    async () => {
      const unfinished = queue.queued + queue.running + queue.waiting
      const text = `Its ${formatCount(unfinished)} unfinished ${unfinished === 1 ? 'job is' : 'jobs are'} cancelled, and its workers stop. Results remain until they expire.`
      if (!(await confirmAction(`Delete ${queue.name}?`, text, 'Delete queue'))) return null
      await call('DELETE', `${PATH}/${queue.name}`)
      queues.remove(queue)
      return `Deleted ${queue.name}`
    },
    true,
  )

const settings = {
  name: { help: 'Lower-case letters, digits, - and _. Unique in the whole service.', placeholder: 'images' },
  open: { label: 'Accept jobs of undeclared tasks', help: '' },
  endpoint: { label: 'Endpoint that receives the jobs (leave empty if workers claim them)' },
}

async function addQueue(queues) {
  const created = await openForm('New worker queue', {
    operation: `POST ${PATH}`,
    fields: ['name', 'description', 'organization_id', 'open'],
    more: ['endpoint'],
    set: { ...settings, organization_id: await organizationField() },
    submit: 'Create queue',
  })
  if (created === null) return
  queues.insert(created)
  announce(`Created ${created.name}. Declare its tasks next.`)
  showSecret(created)
}

/** Returns the setting of a select of the organizations of the account. */
async function organizationField() {
  const found = await call('GET', '/api/v1/orgs?limit=100').catch(() => [])
  const orgs = Array.isArray(found) ? found : Object.values(found).find(Array.isArray)
  return { label: 'Belongs to', type: 'enum', none: 'you', options: orgs.map(({ id, name }) => [id, name]) }
}

const editQueue = (queue, queues) =>
  openForm(`Edit ${queue.name}`, {
    operation: `PATCH ${PATH}/{name}`,
    params: { name: queue.name },
    fields: ['description', 'open'],
    more: ['endpoint'],
    set: { ...settings, endpoint: { ...settings.endpoint, help: 'A change replaces the secret too.' } },
    values: queue,
    done: (changed) => {
      queues.replace(changed)
      showSecret(changed)
      return `Saved ${changed.name}`
    },
  })

/** Shows the secret of a new endpoint, because the service shows it only once. */
function showSecret({ name, endpoint }) {
  if (endpoint?.secret === undefined) return
  openDialog(`Secret of ${name}`, [
    h('p', {}, 'The service signs its requests to the endpoint with this secret. Copy it now. It is shown only once.'),
    h('p', {}, h('code', {}, endpoint.secret)),
    h('div', { class: 'actions' }, copyButton(endpoint.secret, 'secret')),
  ])
}

async function limitQueue({ name }) {
  const { queues } = await call('GET', '/api/v1/queues')
  const limit = queues.find(({ queue }) => queue === name)?.limit ?? null
  await openForm(`Limit of ${name}`, {
    operation: 'PATCH /api/v1/queues/{queue}',
    params: { queue: name },
    set: { limit: { label: 'Most jobs that run at a time', help: 'Leave it empty for no limit.' } },
    values: { limit },
    done: (changed) => (changed.limit === null ? `${name} has no limit` : `${name} runs at most ${formatCount(changed.limit)} at a time`),
  })
}
