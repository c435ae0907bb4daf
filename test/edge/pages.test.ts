import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { test } from 'node:test'
import declaredPages from '../../edge/pages/pages.json' with { type: 'json' }
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
  const script = (await api.get('/pages/landing/link.js')).text
  const paths = ['/setup', '/verify-email', '/password-reset', '/accept-invite', '/register', '/email-change']
  for (const path of [...paths, '/email-change/refuse', '/unsubscribe'])
    assert.ok(script.includes(`'${path}': {`))
  for (const [, path] of script.matchAll(/'(\/api\/[^']+)'/g))
    assert.notEqual((await api.post(path!, { json: {} })).status, 404, path)
})

const PAGES_FOLDER = new URL('../../edge/pages/', import.meta.url)
const files = globSync('**/*.{js,css,svg,html}', { cwd: PAGES_FOLDER })
const scripts = files.filter((file) => file.endsWith('.js'))

test('each declared page has an existing module and style, and is served by its own route', async () => {
  assert.ok(declaredPages.length > 25)
  assert.equal(new Set(declaredPages.map(({ path }) => path)).size, declaredPages.length)
  for (const { path, title, summary, module, style } of declaredPages) {
    assert.ok(title !== '' && /^Show /.test(summary), path)
    assert.ok(files.includes(module), module)
    if (style !== undefined) assert.ok(files.includes(style), style)
    assert.match(
      readFileSync(new URL(module, PAGES_FOLDER), 'utf8'),
      /^export (const|(async )?function) page\b/m,
      module,
    )
    const { status, text } = await api.get(path.replace(/:\w+/g, '1'))
    assert.deepEqual([status, text.includes('/pages/parts/main.js')], [200, true], path)
  }
})

test('every area has its pages in the navigation, and a path of fixed words comes before one with a parameter', () => {
  const areas = new Set(declaredPages.map(({ path }) => path.split('/')[1]))
  const named = new Set(
    declaredPages.filter(({ nav }) => nav !== undefined).map(({ path }) => path.split('/')[1]),
  )
  // The address of the account leads to its pages.
  named.add('account')
  assert.deepEqual([...areas].sort(), [...named].sort())
  const patterns = declaredPages.map(({ path }) => new RegExp(`^${path.replace(/:\w+/g, '[^/]+')}$`))
  for (const { path } of declaredPages)
    assert.equal(declaredPages[patterns.findIndex((pattern) => pattern.test(path))]!.path, path)
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
  for (const file of files.filter((name) => !name.endsWith('.html') && !name.startsWith('docs/')))
    assert.equal((await api.get(`/pages/${file}`)).status, 200, file)
  for (const file of scripts)
    for (const { target, names } of importsOf(file)) {
      const path = target.startsWith('.') ? posix.join('/pages', posix.dirname(file), target) : target
      const { status, text } = await api.get(path)
      assert.equal(status, 200, `${file}: ${target}`)
      if (!path.startsWith('/pages/vendor/'))
        for (const name of names)
          assert.match(
            text,
            new RegExp(`export (async )?(const|function\\*?|class) ${name}\\b`),
            `${file}: ${name}`,
          )
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

/** Returns the imports of a module: each target with the names that it takes. */
function importsOf(file: string): { target: string; names: string[] }[] {
  const text = readFileSync(new URL(file, PAGES_FOLDER), 'utf8')
  const pattern = /^import (?:\{([^}]*)\}|[\w, *{}]+) from '([^']+)'|import\('([^']+)'\)/gm
  return [...text.matchAll(pattern)].map(([, names, from, lazy]) => ({
    target: (from ?? lazy)!,
    names: (names ?? '')
      .split(',')
      .map((name) => name.trim().split(' as ')[0]!)
      .filter((name) => name !== ''),
  }))
}

test('every export of a module is imported, or is the page of a path', () => {
  const used = new Set(scripts.flatMap((file) => importsOf(file).flatMap(({ names }) => names)))
  for (const file of scripts)
    for (const [, name] of readFileSync(new URL(file, PAGES_FOLDER), 'utf8').matchAll(
      /^export (?:async )?(?:const|function\*?|class) (\w+)/gm,
    ))
      assert.ok(name === 'page' || used.has(name!), `${file}: ${name}`)
})

test('the pages call existing routes', async () => {
  const reference = (await api.get('/openapi.json')).json as { paths: Record<string, unknown> }
  const split = (path: string) => path.replace(/\$?\{[^}]*\}/g, '*').split('/')
  const known = Object.keys(reference.paths).map(split)
  const called = scripts.flatMap((file) =>
    [
      ...readFileSync(new URL(file, PAGES_FOLDER), 'utf8').matchAll(/['`](?:[A-Z]+ )?(\/api\/v1\/[^'`?]*)/g),
    ].map(([, path]) => ({ file, path: path! })),
  )
  assert.ok(called.length > 10)
  for (const { file, path } of called) {
    const parts = split(path)
    // A module may hold the beginning of several paths.
    const matches = (other: string[]) =>
      parts.every(
        (part, i) => part === other[i] || (other[i] !== undefined && [part, other[i]].includes('*')),
      )
    assert.ok(known.some(matches), `${file}: ${path}`)
  }
})

test('a browser with a cached part gets 304', async () => {
  for (const path of [
    '/monitor',
    '/pages/parts/main.js',
    '/pages/pages.json',
    '/pages/vendor/uqr.mjs',
    '/docs',
    '/docs/docs.js',
  ]) {
    const first = await api.get(path)
    const again = await api.get(path, { headers: { 'if-none-match': first.headers.etag! } })
    assert.deepEqual([again.status, again.text, again.headers.etag], [304, '', first.headers.etag], path)
    assert.equal((await api.get(path, { headers: { 'if-none-match': '"other"' } })).status, 200, path)
  }
})

test('no other file is served, for any path', async () => {
  for (const path of [
    '/pages/docs/docs.html',
    '/pages/parts/..%2froute.ts',
    '/pages/%2e%2e/route.ts',
    '/pages/toString',
    '/pages/toString/toString',
    '/pages/parts/..%2fpages.json',
    '/pages/monitor/toString',
    '/pages/pictures',
    '/pages/pictures/monitor-light.png',
    '/pages/shell.html',
    '/pages/vendor/uPlot.iife.js',
  ])
    assert.equal((await api.get(path)).status, 404, path)
  const head = await api.call('HEAD', '/verify-email')
  assert.deepEqual([head.status, head.text], [200, ''])
})
