// Handles the links in emails, and the setup link that each start prints until there is an admin. Emailed tokens are in
// the URL fragment, so they reach no log and no referrer. The setup token is in the query, because it is useless once
// there is an admin. So is the token of an unsubscribe link, because mail clients post to its URL.

const PAGES = {
  '/setup': {
    title: 'Create the first admin',
    intro: 'This account will administer this Millrace service.',
    send: 'Create account',
    fields: [
      ['email', 'Email', 'email', 'username', 3],
      ['password', 'Password (at least 8 characters)', 'password', 'new-password', 8],
    ],
    requests: (setup_token, values) => [['/api/v1/auth/register', { ...values, setup_token }]],
    next: '/monitor',
  },
  '/verify-email': {
    title: 'Verify your email address',
    intro: 'Confirm that this address is yours. Someone else may have registered it, so this deletes the account’s API keys, passkeys, one-time codes, webhook endpoints and pending email change. It keeps them if you are signed in here or check the box.',
    send: 'Verify',
    fields: [['keep', 'Keep existing credentials and webhook endpoints', 'checkbox']],
    requests: (token, { keep }) => [['/api/v1/auth/verify-email', { token, keep_credentials: keep === 'on' }]],
    done: 'Your address is verified. You can close this page.',
  },
  '/email-change': {
    title: 'Confirm the email change',
    intro: 'The account changes its address once both the old and the new address have confirmed.',
    send: 'Confirm',
    fields: [],
    requests: (token) => [['/api/v1/auth/email-change/confirm', { token }]],
    done: 'Confirmed. The address changes once both addresses have confirmed. You can close this page.',
  },
  '/email-change/refuse': {
    title: 'Refuse the email change',
    intro: 'The account keeps its current address.',
    send: 'Refuse the change',
    fields: [],
    requests: (token) => [['/api/v1/auth/email-change/refuse', { token }]],
    done: 'The account keeps its address. If you did not request the change, set a new password.',
  },
  '/password-reset': {
    title: 'Set a new password',
    intro: 'A new password ends all sessions of the account. It also deletes the API keys, and webhook endpoints added with them, unless you keep them.',
    send: 'Set password',
    fields: [
      ['new_password', 'New password', 'password', 'new-password', 8],
      ['keep', 'Keep API keys and their webhook endpoints', 'checkbox'],
    ],
    requests: (token, { new_password, keep }) => [['/api/v1/auth/password-reset/confirm', { token, new_password, keep_keys: keep === 'on' }]],
    done: 'Your new password is set. You can sign in with it now.',
  },
  '/register': {
    title: 'Register with your invite',
    intro: 'Create an account with the invited address. Registration accepts the invite.',
    other: ['/accept-invite', 'Have an account? Sign in'],
    send: 'Register',
    fields: [
      ['email', 'Email', 'email', 'username', 3],
      ['full_name', 'Full name (optional)', 'text', 'name', 0, 'optional'],
      ['password', 'Password (at least 8 characters)', 'password', 'new-password', 8],
    ],
    requests: (invite_token, { full_name, ...values }) => [['/api/v1/auth/register', { ...values, full_name: full_name || null, invite_token }]],
    done: 'Your account is ready. If the service accepts invites for verified addresses only, open the link of the verification email.',
  },
  '/magic-link': {
    title: 'Sign in',
    intro: 'This link signs in to your account, once.',
    send: 'Sign in',
    fields: [['code', 'Authenticator code or recovery code', 'text', 'one-time-code', 6, 'on demand']],
    requests: (token, { code }) => [['/api/v1/auth/magic-link', { token, ...factorOf(code) }]],
    next: '/monitor',
  },
  '/accept-invite': {
    title: 'Accept the invite',
    intro: 'Sign in with the invited address.',
    other: ['/register', 'No account yet? Register'],
    send: 'Accept',
    fields: [
      ['email', 'Email', 'email', 'username', 3],
      ['password', 'Password', 'password', 'current-password', 1],
      // Hidden until the service requires a code.
      ['code', 'Authenticator code or recovery code', 'text', 'one-time-code', 6, 'on demand'],
    ],
    requests: (token, { email, password, code }) => [
      ['/api/v1/auth/token', new URLSearchParams({ username: email, password, ...factorOf(code) })],
      ['/api/v1/auth/accept-invite', { token }],
    ],
    done: 'You are now a member. You can close this page.',
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

/** Returns the sign-in parameters for a code. Six digits mean a one-time code, anything else means a recovery code. */
function factorOf(code) {
  if (code === '') return {}
  return /^\d{3} ?\d{3}$/.test(code.normalize('NFKC').trim()) ? { totp_code: code } : { recovery_code: code }
}

const page = PAGES[location.pathname]
const token = new URLSearchParams(location.hash.slice(1) || location.search).get('token') ?? ''
const byId = (id) => document.getElementById(id)

document.title = `${page.title} · Millrace`
byId('title').textContent = page.title
byId('intro').textContent = token === '' ? 'This link is incomplete. Copy the whole link and open it again.' : page.intro
byId('send').textContent = page.send
byId('send').disabled = token === ''
if (page.other !== undefined && token !== '') {
  const [path, text] = page.other
  byId('other').append(Object.assign(document.createElement('a'), { href: `${path}#token=${token}`, textContent: text }))
}
for (const [name, text, type, autocomplete, minLength, shown] of page.fields) {
  const isBox = type === 'checkbox'
  const input = Object.assign(document.createElement('input'), { name, type, required: shown === undefined && !isBox })
  if (!isBox) Object.assign(input, { autocomplete, minLength })
  const label = Object.assign(document.createElement('label'), { textContent: text, hidden: shown === 'on demand' })
  label.append(input)
  byId('fields').append(label)
}

byId('form').addEventListener('submit', async (event) => {
  event.preventDefault()
  byId('send').disabled = true
  const values = Object.fromEntries(new FormData(byId('form')))
  const problem = await sendAll(page.requests(token, values))
  if (problem === null && page.next !== undefined) return location.assign(page.next)
  byId('answer').className = problem === null ? '' : 'bad'
  byId('answer').textContent = problem === null ? page.done : problem.detail
  if (problem?.code?.startsWith('totp')) requireField(byId('form').elements.code)
  byId('form').hidden = problem === null
  byId('other').hidden = problem === null
  byId('send').disabled = false
})

function requireField(input) {
  input.parentElement.hidden = false
  input.required = true
  input.select()
}

/** Sends the requests one by one until one fails. Returns the problem that the service reports; null if all succeed. */
async function sendAll(requests) {
  for (const [url, body] of requests) {
    const isForm = body instanceof URLSearchParams
    const headers = isForm ? {} : { 'content-type': 'application/json' }
    const response = await fetch(url, { method: 'POST', headers, body: isForm ? body : JSON.stringify(body) }).catch(() => null)
    if (response === null) return { detail: 'The service is unreachable. Try again in a moment.' }
    if (response.ok) continue
    return (await response.json().catch(() => null)) ?? { detail: `The service responded with status ${response.status}.` }
  }
  return null
}
