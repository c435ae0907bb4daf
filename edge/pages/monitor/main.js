// The shell around every page of the monitor: who is signed in, and which page the path selects.

import { onSignedOut, signOut, whoAmI } from './api.js'
import { h } from './dom.js'
import { logIn } from './login.js'

const PAGES = [
  [/^\/monitor\/jobs\/([^/]+)$/, () => import('./job.js')],
  [/^\/monitor\/jobs$/, () => import('./jobs.js')],
  [/^\/monitor\/schedules$/, () => import('./schedules.js')],
  [/^\/monitor\/documents$/, () => import('./documents.js')],
  [/^\/monitor\/documents\/([^/]+)$/, () => import('./document.js')],
  [/^\/monitor\/usage$/, () => import('./usage.js')],
  [/^\/monitor$/, () => import('./overview.js')],
]

const at = (id) => document.getElementById(id)
const view = at('view')
const path = location.pathname

for (const anchor of document.querySelectorAll('nav a')) {
  const href = anchor.getAttribute('href')
  const here = href === '/monitor' ? path === href : path.startsWith(href)
  if (here) anchor.setAttribute('aria-current', 'page')
}

const LINKS = { live: 'Live', lost: 'Connection lost, trying again' }

/** Shows how the page is connected: `live`, `lost`, or `none` when there is nothing to follow. */
function showLink(state) {
  const link = at('link')
  link.hidden = state === 'none'
  link.className = state
  const text = LINKS[state] ?? ''
  if (link.textContent !== text) link.textContent = text
}

at('leave').addEventListener('click', async () => {
  await signOut()
  location.reload()
})

// Only a fresh start shows the sign-in form.
onSignedOut(() => location.reload())

async function start() {
  const [, load] = PAGES.find(([pattern]) => pattern.test(path))
  const [, id] = PAGES.map(([pattern]) => pattern.exec(path)).find((found) => found !== null)
  const loading = load()
  let account = await whoAmI()
  while (account === null) {
    await logIn(view)
    account = await whoAmI()
  }
  // Without authentication there is nobody to sign out.
  if (account.id !== 0) {
    at('email').textContent = account.email
    at('account').hidden = false
  }
  for (const anchor of document.querySelectorAll('nav [data-for=admin]')) anchor.hidden = account.role !== 'admin'
  view.replaceChildren()
  const { show } = await loading
  await show(view, { id: id === undefined ? null : decodeURIComponent(id), account, showLink })
}

start().catch((error) => {
  view.replaceChildren(
    h('div', { class: 'panel narrow', role: 'alert' }, h('h1', {}, 'Something went wrong'), h('p', {}, error.message), h('a', { class: 'button', href: path }, 'Try again')),
  )
})
