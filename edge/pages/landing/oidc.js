// Signs in with OpenID Connect: opens the issuer's page, and starts the session once the issuer returns here.

import { factorOf, send } from '../parts/api.js'
import { setText } from '../parts/dom.js'

const byId = (id) => document.getElementById(id)
const parameters = location.search.slice(1)
const given = new URLSearchParams(parameters)
const state = given.get('state')
const [binding = '', ...path] = (sessionStorage.getItem('oidc-binding') ?? '').split(' ')
sessionStorage.removeItem('oidc-binding')
// The code in the address works only once.
history.replaceState(null, '', location.pathname)

async function call(url, json) {
  const response = await send('POST', url, { json }).catch(() => null)
  if (response === null) throw { detail: 'The service is unreachable. Try again in a moment.' }
  const data = await response.json().catch(() => null)
  if (!response.ok) throw data ?? { detail: `The service responded with status ${response.status}.` }
  return data
}

async function begin() {
  const bytes = crypto.getRandomValues(new Uint8Array(32))
  const secret = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
  sessionStorage.setItem('oidc-binding', `${secret} ${given.get('next') ?? '/'}`)
  const { authorization_url } = await call('/api/v1/auth/oidc/begin', { binding: secret })
  location.assign(authorization_url)
}

/** Returns the page to open after the sign-in. It is one of this origin, whatever the address says. */
function nextPage() {
  const url = new URL(path.join(' ') || '/', location.origin)
  return url.origin === location.origin ? url.pathname : '/'
}

async function signIn() {
  await call('/api/v1/auth/oidc/sign-in', { state, binding, ...factorOf(byId('form').elements.code.value) })
  location.assign(nextPage())
}

let isExchanged = false
async function run() {
  byId('send').disabled = true
  setText(byId('problem'), '')
  try {
    if (isExchanged) await signIn()
    else await begin()
  } catch (problem) {
    showProblem(problem)
  }
}

function showProblem({ code = '', detail = 'The sign-in failed. Try again.' }) {
  const needsCode = code.startsWith('auth.totp')
  setText(byId('problem'), detail)
  byId('code-label').hidden = !needsCode
  if (!needsCode) isExchanged = false
  byId('send').disabled = false
  if (needsCode) byId('form').elements.code.focus()
}

byId('form').addEventListener('submit', (event) => {
  event.preventDefault()
  void run()
})

if (state !== null) {
  byId('send').disabled = true
  call('/api/v1/auth/oidc/callback', { binding, parameters })
    .then(() => {
      isExchanged = true
      return signIn()
    })
    .catch(showProblem)
} else if (given.has('next')) void run()
