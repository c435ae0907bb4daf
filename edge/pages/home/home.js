// Home page: whether all is well and, if not, what to do.

import { announce, h, keepFocus } from '../parts/dom.js'
import { makeSignIn } from '../parts/sign-in.js'
import { failure, skeleton } from '../parts/states.js'
import { checksFor } from './checks.js'
import { ownJobs, serviceFigures } from './figures.js'

const REFRESH_MS = 15_000

export function page({ account, setTitle }) {
  if (account === null) {
    setTitle('Welcome')
    return [introduction()]
  }
  const findings = makeFindings(account)
  const figures = account.role === 'admin' ? serviceFigures() : ownJobs()
  const refresh = () => {
    if (document.hidden || document.querySelector('dialog[open]') !== null) return
    findings.load()
    figures.load().catch(() => {})
  }
  setInterval(refresh, REFRESH_MS)
  document.addEventListener('visibilitychange', refresh)
  // Findings report a failed read, so that the figures need not.
  return [findings, { node: figures.node, load: () => figures.load().catch(() => {}) }]
}

/** Makes the text for visitors next to the form that signs them in. */
function introduction() {
  const { node } = makeSignIn(() => location.reload())
  // The page has a heading of its own.
  const title = node.querySelector('h1')
  title?.replaceWith(h('h2', {}, ...title.childNodes))
  const text = h(
    'div',
    {},
    h('p', { class: 'lead' }, 'Documents, chats, messages, payments and your own tasks run here as jobs that survive crashes.'),
    h('p', { class: 'soft' }, 'Sign in to see your work, or read what programs can do here.'),
    h('p', {}, h('a', { href: '/docs' }, 'API reference')),
  )
  return h('div', { class: 'welcome' }, text, node)
}

const ORDER = { bad: 0, warn: 1 }

function makeFindings(account) {
  const body = h('div', {}, skeleton(2))
  const node = h('section', { class: 'panel findings', 'aria-label': 'State' }, body)
  let shown = null
  const load = async () => {
    const results = await Promise.allSettled(checksFor(account).map((check) => Promise.resolve(account).then((it) => check(it, load))))
    const errors = results.filter(({ status }) => status === 'rejected').map(({ reason }) => reason)
    if (errors.length === results.length) {
      shown = null
      body.replaceChildren(failure(errors[0], load))
      return
    }
    const found = results.flatMap(({ value }) => value ?? [])
    if (errors.length > 0) found.push({ tone: 'warn', text: 'Some checks failed', detail: [...new Set(errors.map(({ message }) => message))].join(', ') })
    // An unchanged list keeps its focus and its busy buttons.
    const key = JSON.stringify(found.map(({ button, ...rest }) => rest))
    if (key === shown) return
    const before = shown === null ? null : body.firstElementChild.textContent
    shown = key
    keepFocus(body, () => body.replaceChildren(...show(found, account)))
    const verdict = body.firstElementChild.textContent
    if (before !== null && before !== verdict) announce(verdict)
  }
  return { node, load }
}

function show(found, account) {
  const issues = found.filter(({ tone }) => tone !== 'note').toSorted((a, b) => ORDER[a.tone] - ORDER[b.tone])
  const notes = found.filter(({ tone }) => tone === 'note')
  const isBad = issues.some(({ tone }) => tone === 'bad')
  const calm = account.role === 'admin' ? 'All is well.' : 'All is well. Nothing needs you.'
  const text = issues.length === 0 ? calm : issues.length === 1 ? 'One thing needs a look.' : `${issues.length} things need a look.`
  const head = h('p', { class: `verdict ${issues.length === 0 ? 'good' : isBad ? 'bad' : 'warn'}` }, h('span', { class: 'lamp', 'aria-hidden': 'true' }), text)
  const list = issues.length === 0 ? null : h('ul', { class: 'jobs' }, ...issues.map(item))
  const setUp =
    notes.length === 0
      ? null
      : h(
          'details',
          {},
          h('summary', {}, `Not set up: ${notes.map((note) => note.text.toLowerCase()).join(', ')}`),
          h('ul', { class: 'bare soft' }, ...notes.map((note) => h('li', {}, `${note.text}${note.detail ? `: ${note.detail}` : ''}`))),
        )
  return [head, list, setUp].filter(Boolean)
}

function item({ tone, text, detail, href, action, button }) {
  const link = href === undefined ? null : h('a', { class: 'do', href, 'aria-label': `${action}: ${text}` }, action)
  return h(
    'li',
    { class: `finding ${tone}` },
    h('span', { class: 'lamp', 'aria-hidden': 'true' }),
    h('span', { class: 'what' }, h('strong', {}, text), detail ? h('span', { class: 'soft clamp' }, detail) : null),
    h('span', { class: 'actions' }, link, button ?? null),
  )
}
