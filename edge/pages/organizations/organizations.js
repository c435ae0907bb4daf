// Page of the account's organizations and, for admins of the service, of all organizations.

import { button } from '../parts/actions.js'
import { openForm } from '../parts/dialog.js'
import { h } from '../parts/dom.js'
import { formatDateTime } from '../parts/format.js'
import { list } from '../parts/list.js'
import { clamped } from '../parts/table.js'

export const page = ({ account }) => [
  list({
    title: 'Your organizations',
    path: '/api/v1/orgs',
    note: 'The members of an organization share API keys and webhooks.',
    empty: 'You belong to no organization. Create one, or ask for an invite to one.',
    columns: COLUMNS,
    buttons: () => [button('New organization', createOrganization, { kind: '' })],
  }),
  account.role === 'admin' &&
    list({
      title: 'All organizations',
      name: 'all',
      path: '/api/v1/orgs/all',
      note: 'As an admin of the service, you can join any organization and repair it.',
      empty: 'There are no organizations yet.',
      columns: COLUMNS,
    }),
]

export const pathOf = ({ id }) => `/organizations/${id}`

const COLUMNS = [
  { name: 'Name', kind: 'name address', isFixed: true, show: (org) => h('a', { class: 'clamp', href: pathOf(org) }, org.name) },
  { name: 'Short name', show: ({ slug }) => h('code', { class: 'bound' }, slug) },
  { name: 'Description', kind: 'text', show: ({ description }) => clamped(description) },
  { name: 'Created', kind: 'number', show: ({ created_at }) => formatDateTime(created_at) },
]

/** Returns a short name made from a name; empty if no letter or digit is left. */
const slugOf = (name) =>
  name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/\p{M}/gu, '')
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 63)
    .replace(/^-+|-+$/g, '')

export const SLUG_FIELD = { label: 'Short name', help: 'Lowercase letters, digits and hyphens. Programs use it.', maxLength: 63 }

async function createOrganization() {
  const created = await openForm('New organization', {
    operation: 'POST /api/v1/orgs',
    fields: ['name', 'slug', 'description'],
    set: {
      slug: { ...SLUG_FIELD, isRequired: false, help: `${SLUG_FIELD.help} Made from the name if you leave it empty.` },
      description: { isLong: true, rows: 3, maxLength: 2000, help: undefined },
    },
    prepare: (values) => ({ ...values, slug: values.slug ?? slugOf(values.name) }),
    submit: 'Create organization',
    busy: 'Creating…',
  })
  if (created !== null) location.assign(pathOf(created))
}
