// One page for the links in emails and at the start. A token in an email comes after the `#`, so it reaches no log and no
// referrer; that of the start is good for nothing once there is an admin.

const PAGES = {
  '/setup': {
    title: 'Make the first admin',
    intro: 'The account that you make here runs this Millrace.',
    send: 'Make the account',
    fields: [
      ['email', 'Email', 'email', 'username', 3],
      ['password', 'Password, 8 characters or more', 'password', 'new-password', 8],
    ],
    requests: (setup_token, values) => [['/api/v1/auth/register', { ...values, setup_token }]],
    next: '/monitor',
  },
  '/verify-email': {
    title: 'Verify your address',
    intro: 'Confirm that this address is yours. API keys, passkeys, one-time codes and webhook endpoints that were made before end, unless you are signed in here or keep them: somebody else may have registered the address.',
    send: 'Verify',
    fields: [['keep', 'Keep what was made before', 'checkbox']],
    requests: (token, { keep }) => [['/api/v1/auth/verify-email', { token, keep_credentials: keep === 'on' }]],
    done: 'Your address is verified. You can close this page.',
  },
  '/email-change': {
    title: 'Change an address',
    intro: 'Confirm that the account is to change its address. It does once both addresses have confirmed it.',
    send: 'Confirm',
    fields: [],
    requests: (token) => [['/api/v1/auth/email-change/confirm', { token }]],
    done: 'Confirmed. The address changes once both addresses have confirmed it. You can close this page.',
  },
  '/email-change/refuse': {
    title: 'Refuse the change',
    intro: 'The account keeps the address that it has.',
    send: 'Refuse',
    fields: [],
    requests: (token) => [['/api/v1/auth/email-change/refuse', { token }]],
    done: 'The account keeps its address. If it was not you who asked, set a new password.',
  },
  '/password-reset': {
    title: 'Set a new password',
    intro: 'Setting it ends all sessions of the account, its API keys, and the webhook endpoints that were added with them.',
    send: 'Set password',
    fields: [
      ['new_password', 'New password', 'password', 'new-password', 8],
      ['keep', 'Keep API keys', 'checkbox'],
    ],
    requests: (token, { new_password, keep }) => [['/api/v1/auth/password-reset/confirm', { token, new_password, keep_keys: keep === 'on' }]],
    done: 'Your password has been set. You can sign in with it now.',
  },
  '/accept-invite': {
    title: 'Accept the invite',
    intro: 'Sign in with the invited address. If it has no account yet, register with it; that accepts the invite.',
    send: 'Accept',
    fields: [
      ['email', 'Email', 'email', 'username', 3],
      ['password', 'Password', 'password', 'current-password', 1],
      // Shown once the service asks for it.
      ['code', 'Code of the authenticator app, or a recovery code', 'text', 'one-time-code', 6, 'asked'],
    ],
    requests: (token, { email, password, code }) => [
      ['/api/v1/auth/token', new URLSearchParams({ username: email, password, ...factorOf(code) })],
      ['/api/v1/auth/accept-invite', { token }],
    ],
    done: 'You are now a member. You can close this page.',
  },
}

/** The field of a sign-in that a code is for. */
function factorOf(code) {
  if (code === '') return {}
  return /^\d{3} ?\d{3}$/.test(code) ? { totp_code: code } : { recovery_code: code }
}

const page = PAGES[location.pathname]
const token = new URLSearchParams(location.hash.slice(1) || location.search).get('token') ?? ''
const at = (id) => document.getElementById(id)

document.title = `${page.title} · Millrace`
at('title').textContent = page.title
at('intro').textContent = token === '' ? 'The link is incomplete. Open it exactly as it was given.' : page.intro
at('send').textContent = page.send
at('send').disabled = token === ''
for (const [name, text, type, autocomplete, minLength, when] of page.fields) {
  const isBox = type === 'checkbox'
  const input = Object.assign(document.createElement('input'), { name, type, required: when !== 'asked' && !isBox })
  if (!isBox) Object.assign(input, { autocomplete, minLength })
  const label = Object.assign(document.createElement('label'), { textContent: text, hidden: when === 'asked' })
  label.append(input)
  at('fields').append(label)
}

at('form').addEventListener('submit', async (event) => {
  event.preventDefault()
  at('send').disabled = true
  const values = Object.fromEntries(new FormData(at('form')))
  const problem = await sendAll(page.requests(token, values))
  if (problem === null && page.next !== undefined) return location.assign(page.next)
  at('answer').className = problem === null ? '' : 'bad'
  at('answer').textContent = problem === null ? page.done : problem.detail
  if (problem?.code?.startsWith('totp')) askFor(at('form').elements.code)
  at('form').hidden = problem === null
  at('send').disabled = false
})

function askFor(input) {
  input.parentElement.hidden = false
  input.required = true
  input.select()
}

/** Sends the requests one after the other; returns what went wrong, as the service says it, or null. */
async function sendAll(requests) {
  for (const [url, body] of requests) {
    const isForm = body instanceof URLSearchParams
    const headers = isForm ? {} : { 'content-type': 'application/json' }
    const answer = await fetch(url, { method: 'POST', headers, body: isForm ? body : JSON.stringify(body) }).catch(() => null)
    if (answer === null) return { detail: 'The service cannot be reached. Try again in a moment.' }
    if (answer.ok) continue
    return (await answer.json().catch(() => null)) ?? { detail: `The service responded with status ${answer.status}.` }
  }
  return null
}
