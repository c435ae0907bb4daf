// Page of the account's profile, address, quotas and budget.

import { actionButton, button } from '../parts/actions.js'
import { call, fetchSignInWays } from '../parts/api.js'
import { openForm } from '../parts/dialog.js'
import { h } from '../parts/dom.js'
import { showCountdown } from '../parts/format.js'
import { section } from '../parts/states.js'
import { chip, facts } from '../parts/table.js'
import { dateTime, deletionWarning, withoutAccounts } from './common.js'
import { makeBudget, makeQuotas } from './quotas.js'

export async function page({ account }) {
  const ways = await fetchSignInWays()
  const warning = deletionWarning(account, h('a', { href: '/account/data' }, 'Keep the account'))
  return withoutAccounts(account) ?? [warning, makeProfile(ways), makeQuotas(account), makeBudget(account)]
}

async function readProfile() {
  const [me, change] = await Promise.all([call('GET', '/api/v1/auth/me'), readChange()])
  return { me, change }
}

/** Reads the pending change of the address; null if there is none. */
const readChange = () =>
  call('GET', '/api/v1/auth/me/email').catch((error) => {
    if (error.status === 404) return null
    throw error
  })

function makeProfile(ways) {
  const profile = section({
    title: 'Profile',
    rows: 4,
    read: readProfile,
    show: ({ me, change }) => [change && showChange(change, profile), showFacts(me, ways), showActions(me, ways, profile)],
  })
  return profile
}

function showFacts(me, ways) {
  const verified = me.is_verified ? chip('verified', 'good') : chip('not verified', 'warn')
  return facts([
    ['Name', me.full_name ?? h('span', { class: 'soft' }, 'none')],
    ['Email', h('span', { class: 'address' }, me.email, ' ', ways.emails || me.is_verified ? verified : null)],
    ['Role', me.role],
    ['Registered', dateTime(me.created_at)],
    ['Last sign-in', me.last_login === null ? null : dateTime(me.last_login)],
    ['Account number', String(me.id)],
  ])
}

function showActions(me, ways, profile) {
  const resend = () => call('POST', '/api/v1/auth/resend-verification', { json: {} }).then(() => `An email with a link is on its way to ${me.email}`)
  return h(
    'div',
    { class: 'actions below' },
    button('Change name', () => changeName(me, profile)),
    ways.emails && button('Change email address', () => changeEmail(profile)),
    ways.emails && !me.is_verified && actionButton('Email the verification link again', 'Sending…', 'Email the verification link again', resend, true),
  )
}

// The route takes the name as a query parameter; the form of the registration knows its limits.
const changeName = (me, profile) =>
  openForm('Change name', {
    operation: 'POST /api/v1/auth/register',
    fields: ['full_name'],
    set: { full_name: { label: 'Name', autocomplete: 'name', help: 'Others see it where they work with you. Leave it empty to show your address.' } },
    values: me,
    send: ({ full_name = '' }) => call('PATCH', `/api/v1/auth/users/${me.id}?full_name=${encodeURIComponent(full_name)}`),
    done: () => profile.load().then(() => 'Name saved'),
  })

const changeEmail = (profile) =>
  openForm('Change email address', {
    operation: 'POST /api/v1/auth/me/email',
    fields: ['email'],
    set: { email: { label: 'New address', inputType: 'email', autocomplete: 'email', help: 'Both addresses get an email. The account changes once both links were opened.' } },
    submit: 'Request the change',
    done: () => profile.load().then(() => 'Look into both mailboxes and open the links'),
  })

function showChange(change, profile) {
  const left = h('span', { class: 'figure' })
  showCountdown(left, change.expires_at)
  const state = (isDone) => (isDone ? chip('confirmed', 'good') : chip('waiting for its link', 'warn'))
  const cancel = actionButton('Cancel the change', 'Cancelling…', `Cancel the change to ${change.email}`, async () => {
    await call('DELETE', '/api/v1/auth/me/email')
    await profile.load()
    return 'The address stays'
  })
  return h(
    'div',
    { class: 'warning' },
    h('p', {}, 'Your address is changing to ', h('strong', {}, change.email), '.'),
    facts([
      ['Current address', state(change.old_confirmed)],
      ['New address', state(change.new_confirmed)],
      ['Ends', left],
    ]),
    h('div', { class: 'actions below' }, cancel),
  )
}
