// Signs in with OpenID Connect: opens the issuer's page, and starts the session once the issuer returns here.

const byId = (id) => document.getElementById(id)
const parameters = location.search.slice(1)
const state = new URLSearchParams(parameters).get('state')
const binding = sessionStorage.getItem('oidc-binding') ?? ''
sessionStorage.removeItem('oidc-binding')
// The code in the address works only once.
history.replaceState(null, '', location.pathname)

async function call(path, body) {
  const headers = { 'content-type': 'application/json' }
  const response = await fetch(`/api/v1/auth/oidc/${path}`, { method: 'POST', headers, body: JSON.stringify(body) }).catch(() => null)
  if (response === null) throw { detail: 'The service is unreachable. Try again in a moment.' }
  const json = await response.json().catch(() => null)
  if (!response.ok) throw json ?? { detail: `The service responded with status ${response.status}.` }
  return json
}

async function begin() {
  const bytes = crypto.getRandomValues(new Uint8Array(32))
  const secret = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
  sessionStorage.setItem('oidc-binding', secret)
  const { authorization_url } = await call('begin', { binding: secret })
  location.assign(authorization_url)
}

function factorOf(typed) {
  const code = typed.normalize('NFKC').trim()
  if (code === '') return {}
  return /^\d{3} ?\d{3}$/.test(code) ? { totp_code: code } : { recovery_code: code }
}

async function signIn() {
  await call('sign-in', { state, binding, ...factorOf(byId('form').elements.code.value) })
  location.assign('/monitor')
}

let isExchanged = false
async function run() {
  byId('send').disabled = true
  try {
    if (isExchanged) await signIn()
    else await begin()
  } catch (problem) {
    showProblem(problem)
  }
}

function showProblem({ code = '', detail = 'The sign-in failed. Try again.' }) {
  byId('answer').className = 'bad'
  byId('answer').textContent = detail
  byId('code-label').hidden = !code.startsWith('totp')
  if (!code.startsWith('totp')) isExchanged = false
  byId('send').disabled = false
}

byId('form').addEventListener('submit', (event) => {
  event.preventDefault()
  void run()
})

if (state !== null) {
  byId('send').disabled = true
  call('callback', { binding, parameters })
    .then(() => {
      isExchanged = true
      return signIn()
    })
    .catch(showProblem)
}
