// Entry point of the monitor. Signs the account in and shows the page of the current path.

import { onSignedOut, signOut, fetchAccount } from './api.js'
import { h } from './dom.js'
import { showSignIn } from './login.js'

const PAGES = [
  [/^\/monitor\/jobs\/([^/]+)$/, () => import('./job.js')],
  [/^\/monitor\/jobs$/, () => import('./jobs.js')],
  [/^\/monitor\/schedules$/, () => import('./schedules.js')],
  [/^\/monitor\/documents$/, () => import('./documents.js')],
  [/^\/monitor\/documents\/([^/]+)$/, () => import('./document.js')],
  [/^\/monitor\/usage$/, () => import('./usage.js')],
  [/^\/monitor$/, () => import('./overview.js')],
]

const byId = (id) => document.getElementById(id)
const view = byId('view')
const path = location.pathname

for (const anchor of document.querySelectorAll('nav a')) {
  const href = anchor.getAttribute('href')
  const isCurrent = href === '/monitor' ? path === href : path.startsWith(href)
  if (isCurrent) anchor.setAttribute('aria-current', 'page')
}

const CONNECTION_TEXTS = { live: 'Live', lost: 'Connection lost, reconnecting' }

/** Shows the state of the connection: `live`, `lost`, or `none` if the page has no stream. */
function showConnection(state) {
  const link = byId('link')
  link.hidden = state === 'none'
  link.className = state
  const text = CONNECTION_TEXTS[state] ?? ''
  if (link.textContent !== text) link.textContent = text
}

byId('sign-out').addEventListener('click', async () => {
  await signOut()
  location.reload()
})

// Reloading shows the sign-in form and drops the account's data.
onSignedOut(() => location.reload())

async function start() {
  const [, load] = PAGES.find(([pattern]) => pattern.test(path))
  const [, id] = PAGES.map(([pattern]) => pattern.exec(path)).find((found) => found !== null)
  const loading = load()
  let account = await fetchAccount()
  while (account === null) {
    await showSignIn(view)
    account = await fetchAccount()
  }
  // Without authentication, the account has the id 0 and cannot sign out.
  if (account.id !== 0) {
    byId('email').textContent = account.email
    byId('account').hidden = false
  }
  for (const anchor of document.querySelectorAll('nav [data-for=admin]')) anchor.hidden = account.role !== 'admin'
  view.replaceChildren()
  const { show } = await loading
  await show(view, { id: id === undefined ? null : decodeURIComponent(id), account, showConnection })
}

start().catch((error) => {
  view.replaceChildren(
    h('div', { class: 'panel narrow', role: 'alert' }, h('h1', {}, 'Something went wrong'), h('p', {}, error.message), h('a', { class: 'button', href: path }, 'Try again')),
  )
})
