// Page of the ways to sign in to the account, and of its sessions.

import { actionButton, button } from '../parts/actions.js'
import { call, fetchSignInWays } from '../parts/api.js'
import { confirmAction, openForm } from '../parts/dialog.js'
import { h, panel } from '../parts/dom.js'
import { list } from '../parts/list.js'
import { describePassword } from '../parts/password.js'
import { chip } from '../parts/table.js'
import { makeCodes } from './codes.js'
import { age, dateTime, proofFields, sendProof, withoutAccounts } from './common.js'
import { makePasskeys } from './passkeys.js'

export async function page({ account }) {
  const ways = await fetchSignInWays()
  const own = withoutAccounts(account)
  return own ?? [makePassword(account, ways), makeCodes(), makePasskeys(ways), makeIdentities(ways), makeSessions()]
}

function makePassword(account, ways) {
  const reset = ways.emails ? h('p', { class: 'soft' }, 'You have no password, or forgot it? ', h('a', { href: `/password-reset#email=${encodeURIComponent(account.email)}` }, 'Set one by email'), '.') : null
  const change = button('Change password', () => changePassword(ways))
  return panel('Password', { tools: [change] }, h('p', {}, 'A new password ends your other sessions.'), reset)
}

async function changePassword(ways) {
  const { is_on: hasCodes } = await call('GET', '/api/v1/auth/totp')
  return openForm('Change password', {
    operation: 'POST /api/v1/auth/change-password',
    fields: ['current_password', 'new_password', ...(hasCodes ? ['code'] : [])],
    set: {
      current_password: { label: 'Current password', inputType: 'password', autocomplete: 'current-password' },
      new_password: { label: 'New password', inputType: 'password', autocomplete: 'new-password', help: describePassword(ways.password) },
      code: proofFields.code,
    },
    submit: 'Change password',
    send: sendProof('POST', '/api/v1/auth/change-password'),
    done: () => 'Password changed. Your other sessions have ended.',
  })
}

/** Makes the list of identities, if an issuer is configured. */
const makeIdentities = (ways) =>
  ways.oidc !== null &&
  list({
    name: 'identities',
    title: 'Linked identities',
    path: '/api/v1/auth/me/identities',
    note: `You can also sign in with ${ways.oidc}.`,
    empty: 'None is linked. A sign-in there with the same address links it.',
    columns: [
      { name: 'Provider', kind: 'name', show: ({ issuer }) => h('strong', {}, issuer) },
      { name: 'Address there', kind: 'wide', show: ({ email }) => email },
      { name: 'Linked', kind: 'number', show: ({ created_at }) => dateTime(created_at) },
      { name: 'Last used', kind: 'number', show: ({ last_used_at }) => (last_used_at === null ? 'never' : age(last_used_at)) },
    ],
    actions: (identity, identities) =>
      actionButton('Unlink', 'Unlinking…', `Unlink ${identity.email ?? identity.issuer}`, async () => {
        const question = 'It no longer signs in to this account. Make sure that you have another way to sign in. A later sign-in with the same address links it again.'
        if (!(await confirmAction(`Unlink ${identity.email ?? identity.issuer}?`, question, 'Unlink'))) return null
        await call('DELETE', `/api/v1/auth/me/identities/${identity.id}`, { json: {} })
        identities.remove(identity)
        return 'Unlinked'
      }, true),
  })

const deviceOf = ({ device, user_agent }) => device ?? user_agent ?? 'Unknown device'

const makeSessions = () =>
  list({
    name: 'sessions',
    title: 'Sessions',
    path: '/api/v1/auth/sessions',
    note: 'The devices on which you are signed in. If you do not know one, end it and change your password.',
    columns: [
      { name: 'Device', kind: 'name', show: (session) => h('span', { class: 'chips' }, h('strong', { title: session.user_agent }, deviceOf(session)), session.is_current ? chip('this device', 'good') : null) },
      { name: 'Address', kind: 'text', show: ({ last_address, address, last_place, place }) => [last_address ?? address, last_place ?? place].filter(Boolean).join(', ') },
      { name: 'Signed in', kind: 'number', show: ({ created_at }) => dateTime(created_at) },
      { name: 'Last used', kind: 'number', show: ({ last_used_at }) => age(last_used_at) },
      { name: 'Ends', kind: 'number', isHidden: true, show: ({ expires_at }) => dateTime(expires_at) },
    ],
    buttons: (sessions) => [endOthersButton(sessions)],
    actions: (session, sessions) => (session.is_current ? null : endButton(session, sessions)),
  })

const endButton = (session, sessions) =>
  actionButton('End', 'Ending…', `End the session on ${deviceOf(session)}`, async () => {
    await call('DELETE', `/api/v1/auth/sessions/${session.id}`)
    sessions.remove(session)
    return `Ended the session on ${deviceOf(session)}`
  })

const endOthersButton = (sessions) =>
  actionButton('End all others', 'Ending…', 'End all others', async () => {
    if (!(await confirmAction('End all other sessions?', 'All your other devices are signed out immediately.', 'End all others'))) return null
    await call('DELETE', '/api/v1/auth/sessions')
    await sessions.reload()
    return 'All other sessions have ended'
  }, true)
