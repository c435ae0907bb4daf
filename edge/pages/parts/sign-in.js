// Sign-in with a password, a code, a passkey, an emailed link or OpenID Connect; and proofs of identity.

import { ApiError, call, factorOf, send } from './api.js'
import { h } from './dom.js'
import { openDialog } from './dialog.js'

/** Signs in with a password and, if the account requires it, a code. @throws ApiError */
async function signIn(username, password, code) {
  const response = await send('POST', '/api/v1/auth/token', { form: { username, password, ...factorOf(code) } })
  if (!response.ok) throw new ApiError(response.status, { ...(await response.json().catch(() => null)) })
}

/** Shows the sign-in form instead of the page; resolves after a successful sign-in. */
export function showSignIn(view) {
  return new Promise((resolve) => {
    const { node, focus } = makeSignIn(resolve)
    view.replaceChildren(node)
    focus()
  })
}

/** Makes the sign-in form. `onSignedIn` runs after a successful sign-in. */
export function makeSignIn(onSignedIn) {
  const problem = h('p', { class: 'bad', role: 'alert' })
  const button = h('button', { type: 'submit' }, 'Sign in')
  const email = h('input', { name: 'email', type: 'email', autocomplete: 'username webauthn', required: true })
  const password = h('input', { name: 'password', type: 'password', autocomplete: 'current-password', required: true })
  // Hidden until the service requires a code.
  const code = h('input', { name: 'code', autocomplete: 'one-time-code', autocapitalize: 'none', spellcheck: 'false', maxlength: 40 })
  const codeLabel = h('label', { hidden: true }, 'Authenticator code or recovery code', code)
  const submit = async (event) => {
    event.preventDefault()
    button.disabled = true
    problem.textContent = ''
    try {
      await signIn(email.value, password.value, code.value.trim())
      onSignedIn()
    } catch (error) {
      problem.textContent = error.message
      if (error.code?.startsWith('totp')) {
        codeLabel.hidden = false
        code.required = true
        code.select()
      } else password.select()
    } finally {
      button.disabled = false
    }
  }
  const node = h('form', { class: 'panel narrow', onsubmit: submit }, h('h1', {}, 'Sign in'), h('label', {}, 'Email', email), h('label', {}, 'Password', password), codeLabel, problem, button)
  return { node, focus: () => email.focus() }
}

/**
 * Asks for the password, and a code if the account has codes, before a change of credentials. Resolves to the fields
 * of the request; null if the person gives up.
 */
export async function askForProof(error) {
  const password = h('input', { name: 'password', type: 'password', autocomplete: 'current-password', required: true })
  const code = h('input', { name: 'code', autocomplete: 'one-time-code', autocapitalize: 'none', spellcheck: 'false', maxlength: 40 })
  const { enabled } = await call('GET', '/api/v1/auth/totp').catch(() => ({ enabled: true }))
  const problem = h('p', { class: 'bad', role: 'alert' }, error.code === 'account.proof_wrong' ? error.message : '')
  let proof = null
  const submit = () => {
    proof = { password: password.value, ...factorOf(code.value) }
  }
  const form = h(
    'form',
    { method: 'dialog', class: 'form', onsubmit: submit },
    h('p', {}, 'This change needs your password, because your last sign-in was a while ago.'),
    h('label', {}, 'Password', password),
    enabled ? h('label', {}, 'Authenticator code or recovery code', code) : null,
    problem,
    h('div', { class: 'actions' }, h('button', { value: 'yes' }, 'Continue')),
  )
  const { closed } = openDialog('Confirm that it is you', form)
  password.focus()
  return (await closed) === 'yes' ? proof : null
}
