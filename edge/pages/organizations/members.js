// Members and invites of an organization.

import { actionButton, actWithUndo, button, offerUndo } from '../parts/actions.js'
import { ApiError, call, readList, withQuery } from '../parts/api.js'
import { confirmAction, openForm } from '../parts/dialog.js'
import { announce, copyButton, h } from '../parts/dom.js'
import { formatDateTime, showCountdown } from '../parts/format.js'
import { list } from '../parts/list.js'
import { chip } from '../parts/table.js'
import { grantableBy, nameOf, ranksAs, ROLE_HELP } from './roles.js'

export function memberList(context) {
  const { account, path, repairRole } = context
  const manages = ranksAs(repairRole, 'admin')
  // Only moderators and admins of the service can look up accounts. All others invite an address.
  const finds = manages && account.role !== 'user'
  return list({
    title: 'Members',
    path: `${path}/members/details`,
    key: ({ user_id }) => user_id,
    columns: [
      { name: 'Name', kind: 'name address', isFixed: true, show: (member) => h('span', {}, h('strong', {}, nameOf(member)), member.user_id === account.id && h('span', { class: 'soft' }, ' (you)')) },
      { name: 'Address', kind: 'text', show: ({ full_name, email }) => (full_name ? email : null) },
      { name: 'Rank', show: (member, members) => roleCell(context, member, members) },
      { name: 'Joined', kind: 'number', show: ({ joined_at }) => formatDateTime(joined_at) },
    ],
    buttons: (members) => [finds && button('Add account', () => addMember(context, members))].filter(Boolean),
    actions: manages ? (member, members) => [member.role !== 'owner' && member.user_id !== account.id && removeButton(context, member, members)] : undefined,
  })
}

/** Makes a select for the rank if the account may change it, otherwise the rank. */
function roleCell({ account, path, repairRole }, member, members) {
  if (!ranksAs(repairRole, 'admin') || !ranksAs(repairRole, member.role)) return chip(member.role, member.role === 'owner' ? 'live' : '')
  const options = grantableBy(repairRole).map((role) => h('option', { value: role, selected: role === member.role }, role))
  const select = h('select', { 'aria-label': `Rank of ${nameOf(member)}` }, ...options)
  const setRole = async (role) => {
    await call('PATCH', withQuery(`${path}/members/${member.user_id}`, { role }))
    members.replace({ ...member, role })
  }
  select.addEventListener('change', async () => {
    const role = select.value
    try {
      if (member.user_id === account.id) {
        if (!(await confirmAction('Lower your own rank?', `You become ${role}. Only someone of your present rank can reverse this.`, `Become ${role}`))) return void (select.value = member.role)
        await setRole(role)
        return location.reload()
      }
      await setRole(role)
      offerUndo(`${nameOf(member)} is now ${role}`, () => setRole(member.role))
    } catch (error) {
      select.value = member.role
      announce(`Rank of ${nameOf(member)}: ${error.message}`, { isBad: true })
    }
  })
  return select
}

const removeButton = ({ path }, member, members) =>
  button(
    'Remove',
    () =>
      actWithUndo(`Removed ${nameOf(member)}`, {
        run: () => call('DELETE', `${path}/members/${member.user_id}`),
        hide: () => members.remove(member),
        show: () => members.reload(),
      }),
    { label: `Remove ${nameOf(member)}` },
  )

const addMember = ({ path, repairRole }, members) =>
  openForm('Add account', {
    operation: 'POST /api/v1/orgs/{org_id}/invites',
    fields: ['email', 'role'],
    set: {
      email: { label: 'Address of the account', inputType: 'email', isRequired: true, help: 'The account becomes a member immediately. Invite an address that has no account.' },
      role: { label: 'Rank', type: 'enum', options: grantableBy(repairRole), initial: 'member', isRequired: true, help: ROLE_HELP },
    },
    submit: 'Add account',
    busy: 'Adding…',
    send: async ({ email, role }) => {
      const { items } = await readList(withQuery('/api/v1/auth/users', { search: email, limit: 50 }))
      const found = items.find((account) => account.email === email.trim().toLowerCase())
      if (found === undefined) throw new ApiError(404, { detail: `No account has the address ${email}. Invite it instead.` })
      return call('POST', withQuery(`${path}/members`, { user_id: found.id, role }))
    },
    done: async (_, { email }) => {
      await members.reload()
      return `Added ${email}`
    },
  })

export function inviteList(context, members) {
  const { path } = context
  return list({
    title: 'Pending invites',
    name: 'invites',
    path: `${path}/invites`,
    empty: 'No invites are pending.',
    columns: [
      { name: 'Address', kind: 'name address', isFixed: true, show: ({ email }) => h('strong', {}, email) },
      { name: 'Rank', show: ({ role }) => chip(role, role === 'owner' ? 'live' : '') },
      { name: 'Sent', kind: 'number', show: ({ created_at }) => formatDateTime(created_at) },
      { name: 'Expires', kind: 'number', show: ({ expires_at }) => countdown(expires_at) },
    ],
    buttons: (invites) => [button('Invite', () => invite(context, invites, members), { kind: '' })],
    actions: (one, invites) => [copyButton(`${location.origin}/accept-invite#token=${one.token}`, `link of the invite for ${one.email}`, 'Copy link'), resendButton(path, one, invites), revokeButton(path, one, invites)],
  })
}

function countdown(iso) {
  if (Date.parse(iso) < Date.now()) return chip('expired', 'warn')
  const node = h('span', { title: formatDateTime(iso) })
  showCountdown(node, iso)
  return node
}

const invite = ({ org, role }, invites, members) =>
  openForm(`Invite to ${org.name}`, {
    operation: 'POST /api/v1/orgs/{org_id}/invites',
    params: { org_id: org.id },
    fields: ['email', 'role'],
    set: {
      email: { label: 'Address', help: 'An address that has an account becomes a member immediately. Others get an email with a link.' },
      role: { label: 'Rank', type: 'enum', options: grantableBy(role), initial: 'member', isRequired: true, help: ROLE_HELP },
    },
    submit: 'Invite',
    busy: 'Inviting…',
    done: async (made) => {
      if (made.status === 'pending') {
        await invites.reload()
        return `Invited ${made.email}`
      }
      await members.reload()
      return `${made.email} is now a member`
    },
  })

const resendButton = (path, one, invites) =>
  actionButton('Resend', 'Sending…', `Resend the invite for ${one.email}`, async () => {
    invites.replace(await call('POST', `${path}/invites/${one.id}/resend`, { json: {} }))
    return `Sent the invite for ${one.email} again`
  }, true)

const revokeButton = (path, one, invites) =>
  button(
    'Revoke',
    () =>
      actWithUndo(`Revoked the invite for ${one.email}`, {
        run: () => call('DELETE', `${path}/invites/${one.id}`),
        hide: () => invites.remove(one),
        show: () => invites.reload(),
      }),
    { label: `Revoke the invite for ${one.email}` },
  )
