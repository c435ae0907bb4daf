import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { areas } from '../../edge/routes/index.ts'
import {
  composeNewAddressEmail,
  composeOldAddressEmail,
  composePasswordResetEmail,
  composeVerificationEmail,
} from '../../tasks/accounts/emails.ts'
import { composeInviteEmail } from '../../tasks/accounts/invite-emails.ts'
import { getSharedEdge } from './harness.ts'

const { api } = await getSharedEdge()
const recipient = { email: 'a@example.com', full_name: null }
const invite = { email: 'a@example.com', organization: 'Mill', role: 'member', invitedBy: null }

test('every link in mail leads to an existing page and keeps its token out of requests', async () => {
  const emails = [
    composeVerificationEmail(recipient, { base: 'http://mill.example.com' }, 'a-token', 24),
    composePasswordResetEmail(recipient, { base: 'http://mill.example.com' }, 'a-token', 60),
    composeInviteEmail(invite, { base: 'http://mill.example.com' }, 'a-token', 14),
    composeOldAddressEmail(
      { name: null, address: 'b@c' },
      { base: 'http://mill.example.com' },
      'a-token',
      24,
    ),
    composeNewAddressEmail('b@c', { base: 'http://mill.example.com' }, 'a-token', 24),
  ]
  for (const mail of emails) {
    const [link, ...others] = mail.text.match(/http:\S+/g)!.map((url) => new URL(url)) as [URL]
    for (const { pathname, hash } of others)
      assert.deepEqual([hash, (await api.get(pathname)).status], ['#token=a-token', 200])
    assert.equal(link.hash, '#token=a-token')
    assert.equal(link.search, '')
    const answer = await api.get(link.pathname)
    assert.equal(answer.status, 200)
    assert.match(answer.headers['content-type']!, /^text\/html/)
    assert.match(answer.headers['content-security-policy'] as string, /script-src 'self';/)
    assert.equal(answer.headers['referrer-policy'], 'no-referrer')
    for (const [, asset] of answer.text.matchAll(/(?:src|href)="(\/pages\/[^"]+)"/g))
      assert.equal((await api.get(asset!)).status, 200, asset)
  }
})

test('the script knows each page and calls existing routes', async () => {
  const script = (await api.get('/pages/account.js')).text
  const paths = ['/setup', '/verify-email', '/password-reset', '/accept-invite', '/register', '/email-change']
  for (const path of [...paths, '/email-change/refuse', '/unsubscribe'])
    assert.ok(script.includes(`'${path}': {`))
  for (const [, path] of script.matchAll(/'(\/api\/[^']+)'/g))
    assert.notEqual((await api.post(path!, { json: {} })).status, 404, path)
})

const PAGES_FOLDER = new URL('../../edge/pages/', import.meta.url)
const files = globSync('**/*.{js,css,svg,html}', { cwd: PAGES_FOLDER })
const scripts = files.filter((file) => file.endsWith('.js'))

test('the public pages describe the service and link to the other pages', async () => {
  const home = await api.get('/')
  assert.equal(home.status, 200)
  for (const path of [
    '/monitor',
    '/docs',
    '/health',
    '/monitor/jobs/x',
    '/documents',
    '/documents/trash',
    '/documents/1',
    '/monitor/usage',
  ])
    assert.equal((await api.get(path)).status, 200, path)
  for (const path of ['/monitor', '/docs', '/health']) assert.ok(home.text.includes(`href="${path}"`), path)
})

test('every page is one document', async () => {
  const pages = areas.flatMap(({ routes }) => routes.filter(({ produces }) => produces === 'text/html'))
  assert.ok(pages.length > 10)
  for (const { path, method } of pages) {
    if (method !== 'get') continue
    const { text } = await api.get(path.replace(/:\w+/g, '1') || '/')
    for (const part of ['<!doctype html>', '<html', '<head>', '<title>', '<body'])
      assert.equal(text.split(part).length, 2, `${path}: ${part}`)
  }
})

test('every part of a page is served, and all its imports and links resolve', async () => {
  assert.ok(files.length > 15)
  for (const file of files.filter((name) => !name.endsWith('.html') && !name.startsWith('docs.')))
    assert.equal((await api.get(`/pages/${file}`)).status, 200, file)
  for (const file of scripts) {
    for (const [, target] of readFileSync(new URL(file, PAGES_FOLDER), 'utf8').matchAll(
      /(?:from |import\()'(\.[^']+)'/g,
    ))
      assert.ok(files.includes(`monitor/${target!.slice(2)}`), `${file}: ${target}`)
  }
  for (const file of files.filter((name) => name.endsWith('.html'))) {
    for (const [, path] of readFileSync(new URL(file, PAGES_FOLDER), 'utf8').matchAll(
      /(?:src|href)="(\/[^"]*)"/g,
    ))
      assert.equal((await api.get(path!)).status, 200, `${file}: ${path}`)
  }
})

test('no page has inline scripts, styles or handlers, or names another host', async () => {
  for (const file of files.filter((name) => name.endsWith('.html'))) {
    const text = readFileSync(new URL(file, PAGES_FOLDER), 'utf8')
    assert.doesNotMatch(text, /<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)|javascript:|https?:/, file)
  }
  for (const file of scripts)
    assert.doesNotMatch(
      readFileSync(new URL(file, PAGES_FOLDER), 'utf8').replaceAll('http://www.w3.org/2000/svg', ''),
      /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|https?:|setAttribute\('style'/,
      file,
    )
  const policy = (await api.get('/monitor')).headers['content-security-policy'] as string
  assert.doesNotMatch(policy, /unsafe|\*|https?:|data:/)
  assert.match(policy, /default-src 'none'/)
})

test('the monitor calls existing routes', async () => {
  const reference = (await api.get('/openapi.json')).json as { paths: Record<string, unknown> }
  const called = scripts
    .filter((file) => file.startsWith('monitor/'))
    .flatMap((file) => [
      ...readFileSync(new URL(file, PAGES_FOLDER), 'utf8').matchAll(/['`](\/api\/v1\/[^'`?]*)/g),
    ])
    .map(([, path]) => path!.replace(/\$\{[^}]*\}/g, 'x'))
  assert.ok(called.length > 10)
  const known = Object.keys(reference.paths).map(
    (path) => new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+')}$`),
  )
  for (const path of called)
    assert.ok(
      known.some((pattern) => pattern.test(path)),
      path,
    )
})

test('a browser with a cached part gets 304', async () => {
  for (const path of ['/monitor', '/pages/monitor/main.js', '/docs', '/docs/docs.js']) {
    const first = await api.get(path)
    const again = await api.get(path, { headers: { 'if-none-match': first.headers.etag! } })
    assert.deepEqual([again.status, again.text, again.headers.etag], [304, '', first.headers.etag], path)
    assert.equal((await api.get(path, { headers: { 'if-none-match': '"other"' } })).status, 200, path)
  }
})

test('no other file is served, for any path', async () => {
  for (const path of [
    '/pages/docs.html',
    '/pages/..%2froute.ts',
    '/pages/%2e%2e/route.ts',
    '/pages/toString',
    '/pages/monitor/..%2fpage.css',
    '/pages/monitor/toString',
    '/pages/pictures',
    '/pages/monitor.html',
  ])
    assert.equal((await api.get(path)).status, 404, path)
  const head = await api.call('HEAD', '/verify-email')
  assert.deepEqual([head.status, head.text], [200, ''])
})
