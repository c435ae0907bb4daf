import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inviteLetter, resetLetter, verificationLetter } from '../../tasks/accounts/letters.ts'
import { edgeAndDatabase } from './harness.ts'

const { api } = await edgeAndDatabase()
const to = { email: 'a@example.com', full_name: null }
const invite = { email: 'a@example.com', organization: 'Mill', role: 'member', invitedBy: null }

test('every link of a mail leads to a page that is there, and keeps its token out of the request', async () => {
  const letters = [
    verificationLetter(to, 'http://mill.example.com', 'a-token', 24),
    resetLetter(to, 'http://mill.example.com', 'a-token', 60),
    inviteLetter(invite, 'http://mill.example.com', 'a-token', 14),
  ]
  for (const letter of letters) {
    const link = new URL(/http:\S+/.exec(letter.text)![0])
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

test('the script knows each page, and the routes that it calls', async () => {
  const script = (await api.get('/pages/account.js')).text
  for (const path of ['/verify-email', '/password-reset', '/accept-invite'])
    assert.ok(script.includes(`'${path}': {`))
  for (const [, path] of script.matchAll(/'(\/api\/[^']+)'/g))
    assert.notEqual((await api.post(path!, { json: {} })).status, 404, path)
})

test('no other file is served, whatever its path', async () => {
  for (const path of [
    '/pages/docs.html',
    '/pages/..%2froute.ts',
    '/pages/%2e%2e/route.ts',
    '/pages/toString',
  ])
    assert.equal((await api.get(path)).status, 404, path)
  const head = await api.call('HEAD', '/verify-email')
  assert.deepEqual([head.status, head.text], [200, ''])
})
