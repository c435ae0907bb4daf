// Section of one-time codes: setup with a QR code, recovery codes, and disabling.

import { encode } from '/pages/vendor/uqr.mjs'
import { actionButton, button } from '../parts/actions.js'
import { call } from '../parts/api.js'
import { openDialog, openForm } from '../parts/dialog.js'
import { copyButton, h, svg } from '../parts/dom.js'
import { form } from '../parts/form.js'
import { section } from '../parts/states.js'
import { chip } from '../parts/table.js'
import { dateTime, proofFields, sendProof } from './common.js'

// Fewer codes are likely to run out.
const FEW_CODES = 3

export function makeCodes() {
  const codes = section({
    title: 'One-time codes',
    rows: 2,
    read: () => call('GET', '/api/v1/auth/totp'),
    show: (state) => (state.is_on ? showEnabled(state, codes) : showDisabled(codes)),
  })
  return codes
}

const showDisabled = (codes) => [
  h('p', {}, 'An app on your phone shows a new code every 30 seconds. A sign-in with your password then also needs that code, so the password alone is of no use to others.'),
  h('div', { class: 'actions below' }, actionButton('Set up one-time codes', 'Preparing…', 'Set up one-time codes', () => setUp(codes), true)),
]

const showEnabled = ({ confirmed_at, recovery_codes_left: left }, codes) => [
  h('p', {}, chip('on', 'good'), ' since ', dateTime(confirmed_at), '. ', left < FEW_CODES ? h('strong', {}, leftText(left)) : leftText(left)),
  h('div', { class: 'actions below' }, button('Replace recovery codes', () => replaceRecoveryCodes(codes)), button('Disable', () => disable(codes), { label: 'Disable one-time codes' })),
]

const leftText = (left) => (left === 0 ? 'No recovery code is left. Replace them.' : `${left} recovery ${left === 1 ? 'code is' : 'codes are'} left.`)

/** Draws a QR code. It is dark on light in every theme, because not all cameras read others. */
function drawQr(text) {
  const { data, size } = encode(text, { ecc: 'M', border: 3 })
  const path = data.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : []))).join('')
  const label = 'QR code of the key for your authenticator app'
  return svg('svg', { class: 'qr', viewBox: `0 0 ${size} ${size}`, width: 192, height: 192, role: 'img', 'aria-label': label, 'shape-rendering': 'crispEdges' }, svg('rect', { width: size, height: size, fill: '#fff' }), svg('path', { d: path, fill: '#000' }))
}

const grouped = (secret) => secret.replace(/(.{4})(?=.)/g, '$1 ')

async function setUp(codes) {
  const { secret, uri } = await call('POST', '/api/v1/auth/totp', { json: {} })
  const confirm = form({
    operation: 'POST /api/v1/auth/totp/confirm',
    set: { code: { label: 'Code of the app', help: 'Six digits. Wait for the next code if this one is about to change.', autocomplete: 'one-time-code', placeholder: '123 456' } },
    submit: 'Enable',
    done: async ({ recovery_codes }) => {
      node.close()
      await codes.load()
      showRecoveryCodes(recovery_codes)
      return 'One-time codes are enabled'
    },
  })
  const steps = h(
    'div',
    {},
    h('p', {}, 'Scan this with an authenticator app, such as the one of your password manager.'),
    h('p', { class: 'soft' }, 'You cannot scan? Type this key into the app:'),
    h('code', { class: 'secret' }, grouped(secret)),
    h('div', { class: 'actions' }, copyButton(secret, 'key'), h('a', { href: uri }, 'Open in an app')),
  )
  const { node } = openDialog('Set up one-time codes', [h('div', { class: 'setup' }, drawQr(uri), steps), confirm.node])
  await confirm.load()
  confirm.focus()
}

const proof = (title, method, path, options) =>
  openForm(title, { operation: `${method} ${path}`, fields: ['password', 'code'], set: proofFields, send: sendProof(method, path), ...options })

const replaceRecoveryCodes = (codes) =>
  proof('Replace recovery codes', 'POST', '/api/v1/auth/totp/recovery-codes', {
    submit: 'Replace',
    done: async ({ recovery_codes }) => {
      await codes.load()
      showRecoveryCodes(recovery_codes)
      return 'The previous recovery codes are void'
    },
  })

const disable = (codes) =>
  proof('Disable one-time codes', 'DELETE', '/api/v1/auth/totp', {
    submit: 'Disable',
    done: async () => {
      await codes.load()
      return 'One-time codes are disabled'
    },
  })

/** Shows recovery codes, which the service shows only once. */
function showRecoveryCodes(recoveryCodes) {
  const text = recoveryCodes.join('\n')
  const file = URL.createObjectURL(new Blob([`Recovery codes of ${location.host}. Each works once.\n\n${text}\n`], { type: 'text/plain' }))
  const { closed } = openDialog('Recovery codes', [
    h('p', {}, 'Each of these codes signs you in once, if you lose your phone. Keep them in a safe place. They are shown only now.'),
    h('ul', { class: 'codes' }, ...recoveryCodes.map((code) => h('li', {}, h('code', {}, code)))),
    h('div', { class: 'actions' }, h('a', { class: 'button', href: file, download: 'recovery-codes.txt' }, 'Download'), copyButton(text, 'recovery codes'), button('Print', () => print())),
  ])
  closed.then(() => URL.revokeObjectURL(file))
}
