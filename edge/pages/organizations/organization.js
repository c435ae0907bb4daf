// Page of an organization: its details, members, invites, keys and webhooks.

import { button } from '../parts/actions.js'
import { ApiError, call, withQuery } from '../parts/api.js'
import { confirmAction, openForm } from '../parts/dialog.js'
import { h } from '../parts/dom.js'
import { formatDateTime } from '../parts/format.js'
import { notice, section } from '../parts/states.js'
import { chip, facts } from '../parts/table.js'
import { organizationKeys } from './keys.js'
import { inviteList, memberList } from './members.js'
import { SLUG_FIELD } from './organizations.js'
import { findMember, nameOf, ranksAs } from './roles.js'
import { organizationWebhooks } from './webhooks.js'

export async function page({ account, params, setTitle }) {
  const path = `/api/v1/orgs/${encodeURIComponent(params.org_id)}`
  let org
  try {
    org = await call('GET', path)
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'org.not_member') throw error
    return [joinNotice(account, path)]
  }
  setTitle(org.name)
  const own = await findMember(org.id, ({ user_id }) => user_id === account.id)
  // Without authentication, every caller acts as an owner.
  const role = own?.role ?? (account.id === 0 ? 'owner' : null)
  const context = { account, org, path, role, setTitle, repairRole: account.role === 'admin' ? 'owner' : role }
  const members = memberList(context)
  const manages = ranksAs(role, 'admin')
  return [
    details(context),
    members,
    manages && inviteList(context, members),
    manages && account.id !== 0 && organizationKeys(context),
    manages && account.id !== 0 && organizationWebhooks(context),
  ]
}

/** Makes the notice for an account that is no member. Admins of the service may join to repair the organization. */
function joinNotice(account, path) {
  const back = h('a', { class: 'button', href: '/organizations' }, 'Your organizations')
  if (account.role !== 'admin') return notice('You are not a member', 'Ask an owner of this organization for an invite.', back)
  const join = async () => {
    await call('POST', withQuery(`${path}/members`, { user_id: account.id, role: 'owner' }))
    location.reload()
  }
  return notice('You are not a member', 'As an admin of the service, you can join as an owner and repair it. This is recorded in its audit trail.', h('div', { class: 'actions' }, button('Join as owner', join, { kind: '' })))
}

function details(context) {
  const { org, path, role, repairRole } = context
  const part = section({
    title: 'Details',
    rows: 2,
    read: () => call('GET', path),
    show: (found) => {
      context.org = found
      context.setTitle(found.name)
      return [
        found.description && h('p', { class: 'about' }, found.description),
        facts([
          ['Short name', h('code', {}, found.slug)],
          ['Your rank', role === null ? null : chip(role, role === 'owner' ? 'live' : '')],
          ['Created', formatDateTime(found.created_at)],
          ['State', found.is_active ? null : chip('inactive', 'warn')],
        ]),
      ]
    },
    actions: [
      ranksAs(role, 'admin') && button('Edit', () => edit(context, part)),
      ranksAs(repairRole, 'owner') && button('Transfer ownership', () => transfer(context)),
      role !== null && button('Leave', () => leave(context)),
      ranksAs(repairRole, 'owner') && button('Delete', () => deleteOrganization(context), { label: `Delete ${org.name}` }),
    ].filter(Boolean),
  })
  return part
}

const edit = ({ org, path, role }, part) =>
  openForm('Edit organization', {
    operation: 'POST /api/v1/orgs',
    fields: ranksAs(role, 'owner') ? ['name', 'slug', 'description'] : ['name', 'description'],
    set: { slug: SLUG_FIELD, description: { isLong: true, rows: 3, maxLength: 2000, help: undefined } },
    values: org,
    send: ({ name, slug, description = '' }) => {
      const changed = Object.entries({ name, slug, description }).filter(([key, value]) => value !== undefined && value !== (org[key] ?? ''))
      if (changed.length === 0) return org
      return call('PATCH', `${path}?${new URLSearchParams(changed)}`)
    },
    done: async () => {
      await part.load()
      return 'Saved'
    },
  })

const transfer = ({ org, path }) =>
  openForm('Transfer ownership', {
    operation: 'POST /api/v1/orgs/{org_id}/transfer-ownership',
    fields: ['email'],
    set: { email: { label: 'Address of the new owner', inputType: 'email', isRequired: true, help: 'This must be a member. You become an admin.' } },
    submit: 'Transfer ownership',
    busy: 'Transferring…',
    send: async ({ email }) => {
      const heir = await findMember(org.id, (member) => member.email === email.trim().toLowerCase())
      if (heir === null) throw new ApiError(404, { detail: `${email} is not a member. Invite this address first.` })
      if (!(await confirmAction('Transfer ownership?', `${nameOf(heir)} becomes the owner of ${org.name}. Only an owner can reverse this.`, 'Transfer ownership'))) return null
      return call('POST', `${path}/transfer-ownership`, { json: { user_id: heir.user_id } })
    },
    done: (answer) => answer !== null && location.reload(),
  })

async function leave({ org, path }) {
  if (!(await confirmAction(`Leave ${org.name}?`, 'You lose access immediately. The keys and webhooks that you created for it end. You need an invite to come back.', 'Leave'))) return
  await call('DELETE', `${path}/members/me`)
  location.assign('/organizations')
}

async function deleteOrganization({ org, path }) {
  if (!(await confirmAction(`Delete ${org.name}?`, 'All members lose it immediately, and its keys and webhooks end. A deleted organization cannot be restored.', 'Delete organization'))) return
  await call('DELETE', path)
  location.assign('/organizations')
}
