// Handles the links in emails, the setup link that each start prints until there is an admin, and the forms that request
// such links. Emailed tokens are in the URL fragment, so they reach no log and no referrer. The setup token is in the
// query, because it is useless once there is an admin. So is the token of an unsubscribe link, because mail clients post
// to its URL.

import { factorOf, fetchSignInWays, send } from '../parts/api.js'
import { h, isBusy, setBusy, setText } from '../parts/dom.js'
import { describePassword } from '../parts/password.js'

const HOME = ['/', 'Continue']
const SIGN_IN = ['/', 'Sign in']
const BACK = ['/', 'Back to the sign-in']
const email = ['email', 'Email', 'email', 'username']
const newPassword = (name, text) => [name, text, 'password', 'new-password', 8]
// Hidden until the service requires a code.
const code = ['code', 'Authenticator code or recovery code', 'text', 'one-time-code', 6, 'on demand']

// Each page may have a form for visits without a token. `unless` returns a text in place of the form. `links` follow.
const PAGES = {
  '/setup': {
    title: 'Create the first admin',
    intro: 'This account will administer this Millrace service.',
    send: 'Create account',
    fields: [email, newPassword('password', 'Password')],
    unless: ({ needs_admin }) => (needs_admin ? null : 'There is an admin already. Sign in, or ask an admin for an account.'),
    requests: (setup_token, values) => [['/api/v1/auth/register', { ...values, setup_token }]],
    links: [SIGN_IN],
    next: '/',
  },
  '/verify-email': {
    title: 'Verify your email address',
    intro: 'Confirm that this address is yours. Someone else may have registered it, so this deletes the account’s API keys, passkeys, one-time codes, webhook endpoints and pending email change. It keeps them if you are signed in here or check the box.',
    send: 'Verify',
    fields: [['keep', 'Keep existing credentials and webhook endpoints', 'checkbox']],
    requests: (token, { keep }) => [['/api/v1/auth/verify-email', { token, keep_credentials: keep === 'on' }]],
    done: 'Your address is verified.',
    links: [HOME],
  },
  '/email-change': {
    title: 'Confirm the email change',
    intro: 'The account changes its address once both the old and the new address have confirmed.',
    send: 'Confirm',
    fields: [],
    requests: (token) => [['/api/v1/auth/email-change/confirm', { token }]],
    done: 'Confirmed. The address changes once both addresses have confirmed.',
    links: [['/account', 'Go to your account']],
  },
  '/email-change/refuse': {
    title: 'Refuse the email change',
    intro: 'The account keeps its current address.',
    send: 'Refuse the change',
    fields: [],
    requests: (token) => [['/api/v1/auth/email-change/refuse', { token }]],
    done: 'The account keeps its address. If you did not request the change, set a new password.',
    links: [['/account/security', 'Set a new password']],
  },
  '/password-reset': {
    title: 'Set a new password',
    intro: 'A new password ends all sessions of the account. It also deletes the API keys, and webhook endpoints added with them, unless you keep them.',
    send: 'Set password',
    fields: [newPassword('new_password', 'New password'), ['keep', 'Keep API keys and their webhook endpoints', 'checkbox']],
    requests: (token, { new_password, keep }) => [['/api/v1/auth/password-reset/confirm', { token, new_password, keep_keys: keep === 'on' }]],
    done: 'Your new password is set. You can sign in with it now.',
    links: [SIGN_IN],
    withoutToken: {
      title: 'Forgot your password?',
      intro: 'Get an email with a link that sets a new one.',
      send: 'Email me a link',
      fields: [email],
      unless: ({ emails }) => (emails ? null : 'This service cannot send email. Ask an admin for help.'),
      requests: (_, values) => [['/api/v1/auth/password-reset/request', values]],
      done: 'If the address has an account, an email with a link is on its way. Look into your spam folder, too.',
      links: [BACK],
    },
  },
  '/register': {
    title: 'Register with your invite',
    intro: 'Create an account with the invited address. Registration accepts the invite.',
    other: ['/accept-invite', 'Have an account? Sign in'],
    send: 'Register',
    fields: [email, ['full_name', 'Full name (optional)', 'text', 'name', 0, 'optional'], newPassword('password', 'Password')],
    requests: (invite_token, { full_name, ...values }) => [['/api/v1/auth/register', { ...values, full_name: full_name || null, invite_token }]],
    done: 'Your account is ready. If the service accepts invites for verified addresses only, open the link of the verification email.',
    links: [['/', 'Continue']],
    findLinks: findOrganization,
    withoutToken: {
      title: 'Create an account',
      intro: '',
      send: 'Create account',
      fields: [email, ['full_name', 'Full name (optional)', 'text', 'name', 0, 'optional'], newPassword('password', 'Password')],
      unless: ({ registration }) => (registration ? null : 'Registration is closed. Ask an admin or the owner of an organization for an invite.'),
      requests: (_, { full_name, ...values }) => [['/api/v1/auth/register', { ...values, full_name: full_name || null }]],
      next: '/',
      links: [['/', 'Have an account? Sign in']],
    },
  },
  '/magic-link': {
    title: 'Sign in',
    intro: 'This link signs in to your account, once.',
    send: 'Sign in',
    fields: [code],
    requests: (token, { code }) => [['/api/v1/auth/magic-link', { token, ...factorOf(code) }]],
    next: '/',
    withoutToken: {
      title: 'Sign in by email',
      intro: 'Get an email with a link that signs you in.',
      send: 'Email me a link',
      fields: [email],
      unless: ({ magic_links }) => (magic_links ? null : 'This service does not sign in by email.'),
      requests: (_, values) => [['/api/v1/auth/magic-link/request', values]],
      done: 'If the address has an account, an email with a link is on its way. Look into your spam folder, too.',
      links: [BACK],
    },
  },
  '/accept-invite': {
    title: 'Accept the invite',
    intro: 'Sign in with the invited address.',
    other: ['/register', 'No account yet? Register'],
    send: 'Accept',
    fields: [email, ['password', 'Password', 'password', 'current-password', 1], code],
    requests: (token, { email: username, password, code }) => [
      ...(username === undefined ? [] : [['/api/v1/auth/token', new URLSearchParams({ username, password, ...factorOf(code) })]]),
      ['/api/v1/auth/accept-invite', { token }],
    ],
    done: 'You are now a member.',
    findLinks: ({ organization_id }) => [[`/organizations/${organization_id}`, 'Go to the organization']],
  },
  '/unsubscribe': {
    title: 'Unsubscribe',
    intro: 'Your address will get no more emails of this kind.',
    send: 'Unsubscribe',
    fields: [],
    requests: (token) => [[`/unsubscribe?token=${encodeURIComponent(token)}`, new URLSearchParams({ 'List-Unsubscribe': 'One-Click' })]],
    done: 'You are unsubscribed. You can close this page.',
  },
}

const given = new URLSearchParams(location.hash.slice(1) || location.search)
const token = given.get('token') ?? ''
const page = token === '' ? (PAGES[location.pathname].withoutToken ?? PAGES[location.pathname]) : PAGES[location.pathname]
const hasForm = token !== '' || page !== PAGES[location.pathname]
const byId = (id) => document.getElementById(id)
const [form, button] = [byId('form'), byId('send')]

const linkNodes = (links = []) => links.flatMap(([path, text], i) => [i === 0 ? '' : ' · ', h('a', { href: path }, text)])

/** Makes a field. Passwords that are new say what they must be. */
function makeField([name, text, type, autocomplete, minLength, shown], rules) {
  const isBox = type === 'checkbox'
  const help = autocomplete === 'new-password' ? h('small', { class: 'soft', id: `${name}-help` }, describePassword(rules)) : null
  const input = h('input', { name, type, autocomplete, minlength: isBox ? null : minLength, required: shown === undefined && !isBox, value: name === 'email' ? given.get('email') : null, 'aria-describedby': help?.id })
  if (isBox) return h('label', { class: 'box' }, input, text)
  return h('div', { class: 'field', hidden: shown === 'on demand' }, h('label', {}, text, input), help)
}

/** Shows the page. Someone who is signed in accepts an invite without signing in again. */
async function start() {
  const ways = (await fetchSignInWays().catch(() => null)) ?? {}
  const refusal = (ways.password && page.unless?.(ways)) || (hasForm ? null : 'This link is incomplete. Copy the whole link and open it again.')
  const account = location.pathname === '/accept-invite' && !given.has('as') ? ways.account : null
  setText(byId('title'), page.title)
  document.title = `${page.title} · Millrace`
  setText(byId('intro'), refusal ?? (account ? `Accept it as ${account.email}.` : page.intro))
  setText(button, page.send)
  button.hidden = Boolean(refusal)
  if (!refusal) byId('fields').append(...(account ? [] : page.fields.map((field) => makeField(field, ways.password))))
  const other = account ? [[`${location.pathname}#token=${token}&as=other`, 'Use another account']] : page.other !== undefined && hasForm ? [[`${page.other[0]}#token=${token}`, page.other[1]]] : (page.links ?? []).slice(0, refusal || page !== PAGES[location.pathname] ? 1 : 0)
  byId('other').replaceChildren(...linkNodes(other))
  byId('fields').querySelector('input:not([type=checkbox])')?.focus()
}

form.addEventListener('submit', async (event) => {
  event.preventDefault()
  if (isBusy(button)) return
  setBusy(button, 'Sending…')
  setText(byId('problem'), '')
  const values = Object.fromEntries(new FormData(form))
  const { problem, data } = await sendAll(page.requests(token, values))
  if (problem === undefined && page.next !== undefined) return location.assign(page.next)
  button.removeAttribute('aria-disabled')
  setText(button, page.send)
  if (problem === undefined) return showDone(data)
  setText(byId('problem'), problem.errors?.[0] ? problem.errors.map(({ msg }) => msg).join('; ') : problem.detail)
  if (problem.code?.startsWith('auth.totp')) requireField(form.elements.code)
  else form.querySelector('#fields input:not([type=checkbox])')?.focus()
})

/** Returns links to the organization that the new account has joined; none if it still has to verify its address. */
async function findOrganization() {
  const response = await send('GET', '/api/v1/orgs').catch(() => null)
  const [joined] = response?.ok ? await response.json() : []
  return joined === undefined ? undefined : [[`/organizations/${joined.id}`, `Go to ${joined.name}`]]
}

async function showDone(data) {
  const links = (await page.findLinks?.(data)) ?? page.links
  form.hidden = true
  setText(byId('answer'), page.done)
  byId('other').replaceChildren(...linkNodes(links))
  byId('other').querySelector('a')?.focus()
}

function requireField(input) {
  input.closest('.field').hidden = false
  input.required = true
  input.focus()
  input.select()
}

/** Sends the requests one by one until one fails. Returns the last answer, or the problem that the service reports. */
async function sendAll(requests) {
  let data = null
  for (const [url, body] of requests) {
    const response = await send('POST', url, body instanceof URLSearchParams ? { form: body } : { json: body }).catch(() => null)
    if (response === null) return { problem: { detail: 'The service is unreachable. Try again in a moment.' } }
    data = await response.json().catch(() => null)
    if (!response.ok) return { problem: data ?? { detail: `The service responded with status ${response.status}.` } }
  }
  return { data }
}

// Another link to this page differs in the fragment only, which loads nothing.
addEventListener('hashchange', () => location.reload())
start()
