import { signIn } from './api.js'
import { h } from './dom.js'

/** Shows the sign-in form instead of the page; resolves after a successful sign-in. */
export function showSignIn(view) {
  return new Promise((resolve) => {
    const problem = h('p', { class: 'bad', role: 'alert' })
    const button = h('button', { type: 'submit' }, 'Sign in')
    const email = h('input', { name: 'email', type: 'email', autocomplete: 'username', required: true })
    const password = h('input', { name: 'password', type: 'password', autocomplete: 'current-password', required: true })
    // Hidden until the service requires a code.
    const code = h('input', { name: 'code', autocomplete: 'one-time-code', autocapitalize: 'none', spellcheck: 'false', maxlength: 40 })
    const codeLabel = h('label', { hidden: true }, 'Authenticator code or recovery code', code)
    const requireCode = () => {
      codeLabel.hidden = false
      code.required = true
      code.select()
    }
    const send = async (event) => {
      event.preventDefault()
      button.disabled = true
      problem.textContent = ''
      try {
        await signIn(email.value, password.value, code.value.trim())
        resolve()
      } catch (error) {
        problem.textContent = error.message
        if (error.code?.startsWith('totp')) requireCode()
        else password.select()
      } finally {
        button.disabled = false
      }
    }
    const form = h(
      'form',
      { class: 'panel narrow', onsubmit: send },
      h('h1', {}, 'Sign in'),
      h('label', {}, 'Email', email),
      h('label', {}, 'Password', password),
      codeLabel,
      problem,
      button,
    )
    view.replaceChildren(form)
    email.focus()
  })
}
