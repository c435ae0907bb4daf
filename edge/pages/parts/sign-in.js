// Sign-in with a password, a code, a passkey, an emailed link or OpenID Connect; and proofs of identity.

import { ApiError, call, factorOf, fetchAccount, fetchSignInWays, send } from './api.js'
import { h, isBusy, setBusy, setText } from './dom.js'
import { openDialog } from './dialog.js'
import { findPasskeyProblem, signInWithPasskey } from './passkeys.js'

/** Signs in with a password and, if the account requires it, a code. @throws ApiError */
async function signIn(username, password, code) {
  const response = await send('POST', '/api/v1/auth/token', { form: { username, password, ...factorOf(code) } })
  if (!response.ok) throw new ApiError(response.status, { ...(await response.json().catch(() => null)) })
}

/** Shows the sign-in form instead of the page; resolves after a successful sign-in. */
export function showSignIn(view) {
  return new Promise((resolve) => {
    const { node, focus, load } = makeSignIn(resolve)
    load().finally(() => {
      view.replaceChildren(node)
      focus()
    })
  })
}

const codeInput = () => h('input', { name: 'code', autocomplete: 'one-time-code', autocapitalize: 'none', spellcheck: 'false', maxlength: 40 })

/** Focuses an input and selects its text, so that typing replaces it. */
function retype(input) {
  input.focus()
  input.select()
}

/** Makes the sign-in form. `load` waits for the other ways to sign in. `onSignedIn` runs after a successful sign-in. */
export function makeSignIn(onSignedIn) {
  const problem = h('p', { class: 'bad', role: 'alert' })
  const button = h('button', { type: 'submit' }, 'Sign in')
  const email = h('input', { name: 'email', type: 'email', autocomplete: 'username', required: true })
  const password = h('input', { name: 'password', type: 'password', autocomplete: 'current-password', required: true })
  // Hidden until the service requires a code.
  const code = codeInput()
  const codeLabel = h('label', { hidden: true }, 'Authenticator code or recovery code', code)
  const showProblem = (error) => {
    setText(problem, error.message)
    if (!error.code?.startsWith('auth.totp')) return
    codeLabel.hidden = false
    code.required = true
  }
  const submit = async (event) => {
    event.preventDefault()
    if (isBusy(button)) return
    setBusy(button, 'Signing in…')
    setText(problem, '')
    try {
      await signIn(email.value, password.value, code.value.trim())
      onSignedIn()
    } catch (error) {
      showProblem(error)
      retype(codeLabel.hidden ? password : code)
    } finally {
      button.removeAttribute('aria-disabled')
      setText(button, 'Sign in')
    }
  }
  const others = h('div', { class: 'others' })
  const note = h('p', { class: 'soft' })
  const form = h('form', { onsubmit: submit }, h('label', {}, 'Email', email), h('label', {}, 'Password', password), codeLabel, problem, button)
  const showOthers = async () => {
    const ways = await fetchSignInWays().catch(() => ({}))
    const nodes = otherWays(ways, { email, onSignedIn, showProblem })
    others.replaceChildren(...nodes)
    note.replaceChildren(...footer(ways, email))
    if (ways.needs_admin) setText(problem, 'There is no admin yet. Open the link that the service printed when it started.')
  }
  const node = h('section', { class: 'panel narrow sign-in' }, h('h1', {}, 'Sign in'), form, others, note)
  const loading = showOthers()
  return { node, load: () => loading, focus: () => email.focus() }
}

/** Returns links and buttons for the other ways to sign in. */
function otherWays(ways, { email, onSignedIn, showProblem }) {
  const passkey = h('button', { class: 'plain', type: 'button', onclick: () => usePasskey() }, 'Use a passkey')
  const usePasskey = async () => {
    if (isBusy(passkey)) return
    setBusy(passkey, 'Waiting for your device…')
    await signInWithPasskey().then(onSignedIn, showProblem)
    passkey.removeAttribute('aria-disabled')
    setText(passkey, 'Use a passkey')
  }
  const nodes = [
    ways.passkeys && findPasskeyProblem(ways) === null && passkey,
    ways.magic_links && linkWithEmail('/magic-link', 'Email me a link', email, 'button plain'),
    ways.oidc && h('a', { class: 'button plain', href: `/oidc?next=${encodeURIComponent(location.pathname)}` }, `Continue with ${ways.oidc}`),
  ].filter(Boolean)
  return nodes.length === 0 ? [] : [h('p', { class: 'or' }, 'or'), ...nodes]
}

function footer(ways, email) {
  const links = [ways.emails && linkWithEmail('/password-reset', 'Forgot your password?', email), ways.registration && linkWithEmail('/register', 'Create an account', email)]
  return links.filter(Boolean)
}

/** Makes a link to a page whose form begins with the address that was typed here. */
function linkWithEmail(path, text, email, className = '') {
  const link = h('a', { class: className, href: path }, text)
  link.addEventListener('click', () => {
    if (email.value !== '') link.href = `${path}#email=${encodeURIComponent(email.value)}`
  })
  return link
}

/**
 * Asks for the password, and a code if the account has codes, before a change of credentials. Resolves to the fields
 * of the request; null if the person gives up.
 */
export async function askForProof(error) {
  const password = h('input', { name: 'password', type: 'password', autocomplete: 'current-password', required: true })
  const code = codeInput()
  const { is_on: hasCodes } = await call('GET', '/api/v1/auth/totp').catch(() => ({ is_on: true }))
  const ways = await fetchSignInWays().catch(() => ({}))
  const problem = h('p', { class: 'bad', role: 'alert' }, error.code === 'account.proof_wrong' ? error.message : '')
  let proof = null
  const submit = () => {
    proof = { password: password.value, ...factorOf(code.value) }
  }
  const usePasskey = async () => {
    const before = await fetchAccount()
    try {
      await signInWithPasskey()
    } catch (failed) {
      return setText(problem, failed.message)
    }
    // The passkey may belong to another account, for which the change is not meant.
    if ((await fetchAccount())?.id !== before?.id) return location.reload()
    proof = {}
    node.close('yes')
  }
  const passkey = ways.passkeys && findPasskeyProblem(ways) === null && h('button', { class: 'plain', type: 'button', onclick: usePasskey }, 'Use a passkey')
  const reset = ways.emails && h('a', { href: '/password-reset' }, 'Forgot your password?')
  const form = h(
    'form',
    { method: 'dialog', class: 'form', onsubmit: submit },
    h('p', {}, 'This change needs your password, because your last sign-in was a while ago.'),
    h('label', {}, 'Password', password),
    hasCodes ? h('label', {}, 'Authenticator code or recovery code', code) : null,
    problem,
    h('div', { class: 'actions' }, h('button', { value: 'yes' }, 'Continue'), passkey, reset),
  )
  const { node, closed } = openDialog('Confirm that it is you', form)
  password.focus()
  return (await closed) === 'yes' ? proof : null
}
