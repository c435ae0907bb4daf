// Things that several account pages show.

import { call, factorOf } from '../parts/api.js'
import { openDialog } from '../parts/dialog.js'
import { copyButton, h } from '../parts/dom.js'
import { formatDateTime, showAge } from '../parts/format.js'
import { emptyNotice } from '../parts/states.js'

/** Makes a time as the age of an event. */
export function age(iso, after = ' ago') {
  const node = h('time', { class: 'figure', datetime: iso })
  showAge(node, iso, after)
  return node
}

export const dateTime = (iso) => h('time', { class: 'figure', datetime: iso }, formatDateTime(iso))

/** Shows a secret, which the service shows only once. `more` are nodes below it. */
export const showSecret = (title, name, secret, ...more) =>
  openDialog(title, [
    h('p', {}, `Copy the ${name} now. It is shown only once.`),
    h('code', { class: 'secret' }, secret),
    ...more,
    h('div', { class: 'actions' }, copyButton(secret, name)),
  ])

/** Fields of forms that need the password and a code, as `fields` and `set` of `form()`. */
export const proofFields = {
  password: { label: 'Password', inputType: 'password', autocomplete: 'current-password', minLength: undefined },
  code: { label: 'Authenticator code or recovery code', isRequired: true, autocomplete: 'one-time-code', maxLength: 40 },
}

/** Returns a `send` of `form()` for routes that always need a proof, so no further dialog asks for it. */
export const sendProof = (method, path) => ({ code = '', ...json }) => call(method, path, { json: { ...json, ...factorOf(code) }, isProven: true })

/** Makes the panel in place of a page if the service has no accounts; null if it has. */
export function withoutAccounts(account) {
  if (account.id !== 0) return null
  return [h('section', { class: 'panel' }, emptyNotice('This service runs without accounts, so there is nothing to set here.'))]
}

/** Makes a notice about a pending deletion; null if none is pending. */
export function deletionWarning({ deletion_at }, ...actions) {
  if (deletion_at === null) return null
  return h('div', { class: 'warning actions', role: 'note' }, h('span', {}, 'This account will be deleted on ', h('strong', {}, formatDateTime(deletion_at)), '. Until then everything works as before.'), ...actions)
}
