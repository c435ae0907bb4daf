import assert from 'node:assert/strict'
import { test } from 'node:test'
import { previewTokenOf } from '../../tasks/blog/previews.ts'
import { FOREIGN_KEYS, TEST_KEYS } from '../keys.ts'
import { createSharedBlog } from './blog-help.ts'
import { assertRefused } from './orgs-help.ts'

/** Preview links show a post to anybody until they expire or are revoked. */

const { api, call, editor, write, query } = await createSharedBlog()

const DAY_MS = 86_400_000
const WEEK_MS = 7 * DAY_MS
const link = async (id: number, json?: object) => {
  const answer = await call(editor, 'POST', `/posts/${id}/preview`, json === undefined ? {} : { json })
  assert.equal(answer.status, 201, answer.text)
  assert.equal(answer.headers['cache-control'], 'no-store')
  return answer.json as { url: string; token: string; expires_at: string }
}
const open = (token: string) => call(null, 'GET', `/preview/${token}`)
const assertExpired = async (token: string) =>
  assertRefused(await open(token), 404, 'This preview link does not exist or is no longer valid')

test('a link shows the current version of a draft without a credential', async () => {
  const { id } = await write({ title: 'Draft', content: 'Text' })
  const { url, token, expires_at } = await link(id)
  assert.ok(Math.abs(Date.parse(expires_at) - Date.now() - WEEK_MS) < 60_000)
  assert.ok(url.endsWith(`/api/v1/blog/preview/${token}`))
  const { json: changed } = await call(editor, 'PUT', `/posts/${id}`, { json: { title: 'Newer draft' } })
  const shown = await open(token)
  assert.deepEqual([shown.status, shown.json], [200, changed])
  assert.deepEqual([shown.headers['cache-control'], shown.headers['x-robots-tag']], ['no-store', 'noindex'])
  for (const act of ['publish', 'archive']) {
    await call(editor, 'POST', `/posts/${id}/${act}`)
    assert.equal((await open(token)).status, 200, act)
  }
})

test('links are revoked together, and end with the post', async () => {
  const [one, other] = [await write(), await write()]
  const tokens = [(await link(one.id)).token, (await link(one.id)).token]
  const { token } = await link(other.id)
  assert.notEqual(tokens[0], tokens[1])
  assert.equal((await call(editor, 'DELETE', `/posts/${one.id}/preview`)).status, 204)
  for (const revoked of tokens) await assertExpired(revoked)
  assert.equal((await call(editor, 'DELETE', `/posts/${one.id}/preview`)).status, 204)
  assert.equal((await open(token)).status, 200)
  await call(editor, 'DELETE', `/posts/${other.id}`)
  await assertExpired(token)
})

test('a link expires, after 90 days at most', async () => {
  const { id } = await write()
  const { token, expires_at } = await link(id, { expires_in_seconds: 3600 })
  assert.ok(Math.abs(Date.parse(expires_at) - Date.now() - 3_600_000) < 60_000)
  await query(`update blog_preview set expires_at = now() where post_id = $1`, [id])
  await assertExpired(token)
  for (const expires_in_seconds of [59, 90 * 86_400 + 1, 1.5, '3600'])
    assertRefused(await call(editor, 'POST', `/posts/${id}/preview`, { json: { expires_in_seconds } }), 422)
  await link(id, { expires_in_seconds: 90 * 86_400 })
})

test('forged tokens and unknown posts are 404', async () => {
  const { id } = await write()
  const { token } = await link(id)
  const [number, mac] = token.split('.') as [string, string]
  const last = mac.at(-1) === 'A' ? 'B' : 'A'
  for (const forged of [
    `${Number(number) + 1}.${mac}`,
    `0${token}`,
    `${number}.${mac.slice(0, -1)}${last}`,
    number,
    '.',
    `${number}.`,
    previewTokenOf(FOREIGN_KEYS, Number(number)),
    previewTokenOf(TEST_KEYS, Number.MAX_SAFE_INTEGER),
  ])
    await assertExpired(forged)
  assert.equal((await open('x'.repeat(101))).status, 422)
  for (const method of ['POST', 'DELETE'])
    assertRefused(await call(editor, method, '/posts/999999999/preview'), 404, 'Post not found')
})

test('a repeated request gets the same link, whose token the database does not have', async () => {
  const { id } = await write()
  const headers = { 'idempotency-key': `preview-${id}` }
  const [first, again] = [
    await call(editor, 'POST', `/posts/${id}/preview`, { headers }),
    await call(editor, 'POST', `/posts/${id}/preview`, { headers }),
  ]
  assert.deepEqual(again.json, first.json)
  const stored = JSON.stringify(await query('select * from idempotency_key'))
  assert.ok(!stored.includes(first.json.token))
  assert.equal((await api.call('HEAD', `/api/v1/blog/preview/${first.json.token}`)).status, 200)
})

test('a post has at most 100 links: another one replaces the oldest', async () => {
  const { id } = await write()
  const { token: first } = await link(id)
  const { token: second } = await link(id)
  await query(
    `insert into blog_preview (post_id, expires_at) select $1, now() + interval '1 day' from generate_series(1, 98)`,
    [id],
  )
  await link(id)
  await assertExpired(first)
  assert.equal((await open(second)).status, 200)
})
