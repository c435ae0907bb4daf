// Entry point of all pages: signs the account in, builds the navigation and shows the page of the current path.

import pages from '/pages/pages.json' with { type: 'json' }
import { ApiError, fetchAccount, onProofRequired, onSignedOut, signOut } from './api.js'
import { h, setText } from './dom.js'
import { openDialog } from './dialog.js'
import { askForProof, makeSignIn, showSignIn } from './sign-in.js'
import { shortcut } from './shortcuts.js'
import { adviceFor, notice } from './states.js'

// Parts that load within this time appear together. After it, each waits for those above it, so that none moves another.
const SETTLE_MS = 400
const MAX_WAIT_MS = 3000

const byId = (id) => document.getElementById(id)
const view = byId('view')
// A page may set its title while it loads, before its heading is shown.
const heading = h('h1', { id: 'title' })
const page = pages.find(({ path }) => patternOf(path).test(location.pathname))
const areaOf = (path) => path.split('/')[1]

/** Returns the pattern of a path such as `/chat/:id`. */
function patternOf(path) {
  return new RegExp(`^${path.replace(/:(\w+)/g, '(?<$1>[^/]+)')}/?$`)
}

function readParams() {
  const found = patternOf(page.path).exec(location.pathname)?.groups ?? {}
  return Object.fromEntries(Object.entries(found).map(([name, value]) => [name, decodeURIComponent(value)]))
}

const CONNECTION_TEXTS = {
  live: 'Live',
  lost: 'Connection lost, reconnecting',
  polling: 'This network holds back live updates. The page reads them every 3 s.',
}

/** Shows the state of the connection: `live`, `lost`, `polling`, or `none` if the page has no stream. */
function showConnection(state) {
  const link = byId('link')
  const text = CONNECTION_TEXTS[state]
  link.hidden = text === undefined
  link.className = state
  setText(link, text ?? '')
}

/** A page without `for` is for everybody; otherwise it names a role, or several. */
const isAllowed = (account) => (entry) => entry.for === undefined || [entry.for].flat().includes(account?.role)

/** Fills the navigation with the pages that the account may see. An area's link leads to its first such page. */
function showNavigation(account) {
  const entries = pages.filter(({ nav }) => nav !== undefined).filter(isAllowed(account))
  const links = entries.filter(({ nav, path }, i) => entries.findIndex((other) => other.nav === nav && areaOf(other.path) === areaOf(path)) === i)
  const anchors = links.map(({ nav, path }) => h('a', { href: path, 'aria-current': areaOf(path) === areaOf(page.path) ? 'page' : null }, nav))
  byId('nav').replaceChildren(...anchors, h('a', { href: '/docs' }, 'Reference'))
  for (const { nav, path } of links) shortcut(`g ${nav.charAt(0).toLowerCase()}`, `Go to ${nav}`, () => location.assign(path))
}

/** Returns the tabs of the current area, or null if it has one page. */
function makeTabs(account) {
  const tabs = pages.filter(({ tab, path }) => tab !== undefined && areaOf(path) === areaOf(page.path)).filter(isAllowed(account))
  if (tabs.length < 2) return null
  const isCurrent = ({ path }) => path === page.path || (page.tab === undefined && page.path.startsWith(`${path}/:`))
  return h('nav', { class: 'tabs', 'aria-label': 'Sections' }, ...tabs.map((entry) => h('a', { href: entry.path, 'aria-current': isCurrent(entry) ? 'page' : null }, entry.tab)))
}

function showAccount(account) {
  // Without authentication, the account has the id 0 and cannot sign out.
  if (account === null || account.id === 0) return
  setText(byId('email'), account.email)
  byId('account').hidden = false
  if (areaOf(page.path) === 'account') byId('email').setAttribute('aria-current', 'page')
}

byId('sign-out').addEventListener('click', async () => {
  await signOut()
  location.assign('/')
})
byId('menu').addEventListener('click', () => {
  const isOpen = byId('menu').getAttribute('aria-expanded') === 'true'
  byId('menu').setAttribute('aria-expanded', String(!isOpen))
  byId('bar').classList.toggle('open', !isOpen)
})

/** Sets the title of the page, which is also its heading. */
function setTitle(title) {
  document.title = title === 'Home' ? 'Millrace' : `${title} · Millrace`
  setText(heading, title)
}

onProofRequired(askForProof)

/** Asks the person to sign in again over the page, which keeps what they typed. Another account reloads the page. */
async function continueAs(account) {
  const { node, focus } = makeSignIn(() => dialog.node.close('yes'))
  const dialog = openDialog('Your session has ended', node)
  focus()
  const isSignedIn = (await dialog.closed) === 'yes'
  if (isSignedIn && (await fetchAccount())?.id === account?.id) return true
  location.reload()
  return false
}

/** Hides the headings of a part from the eye if they repeat the heading of the page. */
function hideRepeatedHeadings(part) {
  for (const node of part.querySelectorAll('h2')) if (node.textContent === heading.textContent) node.classList.add('hidden')
}

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

/** Loads the parts of a page and shows them from top to bottom. */
async function showParts(parts, tabs) {
  const loads = parts.map((part) => Promise.resolve(part.load?.()).catch(() => {}))
  const patience = wait(MAX_WAIT_MS)
  await Promise.race([Promise.all(loads), wait(SETTLE_MS)])
  view.replaceChildren(...[tabs, heading].filter(Boolean))
  for (const [i, part] of parts.entries()) {
    const node = part.node ?? part
    hideRepeatedHeadings(node)
    view.append(node)
    await Promise.race([loads[i], patience])
  }
}

function loadStyle(file) {
  return new Promise((resolve) => document.head.append(h('link', { rel: 'stylesheet', href: `/pages/${file}`, onload: resolve, onerror: resolve })))
}

/**
 * Shows the page. A page module exports `page(context)`, which returns its parts: nodes, or `{ node, load }`.
 */
async function start() {
  const loading = Promise.all([import(`/pages/${page.module}`), page.style && loadStyle(page.style)])
  // Its failure is reported when the page needs it.
  loading.catch(() => {})
  let account = await fetchAccount()
  while (account === null && page.open !== true) {
    await showSignIn(view)
    account = await fetchAccount()
  }
  onSignedOut(() => continueAs(account))
  showNavigation(account)
  showAccount(account)
  const tabs = makeTabs(account)
  setTitle(page.title)
  if (!isAllowed(account)(page)) return view.replaceChildren(notice('Admins only', 'Ask an admin to open this page, or to make you one.', h('a', { class: 'button', href: '/' }, 'Home')))
  const [module] = await loading
  const context = { account, params: readParams(), showConnection, setTitle, view }
  const parts = (await module.page(context)).filter(Boolean)
  await showParts(parts, tabs)
  if (location.hash !== '') document.getElementById(location.hash.slice(1))?.scrollIntoView()
}

start().catch((error) => {
  if (!(error instanceof ApiError)) console.error(error)
  const title = error.status === 404 ? 'Not found' : error.status === 0 ? 'Offline' : 'This page could not be shown'
  const node = notice(title, `${error.message}. ${adviceFor(error)}`, h('a', { class: 'button', href: location.href }, 'Try again'))
  node.setAttribute('role', 'alert')
  view.replaceChildren(node)
})
