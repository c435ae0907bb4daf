import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { compactJson } from '../../edge/http/reply.ts'
import { createRunOptions } from '../runs.ts'
import { createSharedBlog } from './blog-help.ts'
import { createLedger } from './ledger.ts'
import { createSlug } from './orgs-help.ts'

/** All JSON must have the format of JSON.stringify, whichever part produces it. */

const { api, call, editor, write, publish, tag, admin, ...database } = await createSharedBlog()
const { query } = database
const ledger = createLedger(database)

function assertCompact(text: string, what: string): void {
  assert.equal(text, JSON.stringify(JSON.parse(text)), what)
}

describe('compact JSON', () => {
  test('removes white space between tokens and keeps it inside strings', () => {
    const nasty = fc.constantFrom('"', '\\', '\\"', ' : ', ', ', '\n', '" : "', '", "', '{ }', 'é', '🜁', ' ')
    const texts = fc.array(fc.oneof(nasty, fc.string())).map((parts) => parts.join(''))
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'binary' }), texts, (value, text) => {
        const both = { [text]: value, list: [text, { text }] }
        for (const indent of [0, 1, ' \n'])
          assert.equal(compactJson(JSON.stringify(both, null, indent)), JSON.stringify(both))
      }),
      createRunOptions(),
    )
  })

  test('preserves the values from PostgreSQL', async () => {
    const value = { a: ' " : , ', b: [1, { c: null }, 'x\\'], 'k : "': '', d: { e: [] } }
    for (const sql of [
      '$1::jsonb',
      'json_build_object($$o$$, $1::jsonb)',
      'json_build_array($1::json, $1::jsonb)',
    ]) {
      const [row] = await query(`select (${sql})::text as text`, [JSON.stringify(value)])
      const text = row!.text as string
      assert.deepEqual(JSON.parse(compactJson(text)), JSON.parse(text))
      assertCompact(compactJson(text), sql)
    }
  })
})

test('answers and frames contain no white space between tokens', async () => {
  const one = await tag(createSlug('one tag'))
  const another = await tag(`Another "tag" : , ${createSlug()}`)
  const post = await publish({
    title: `A : "title", with all ${createSlug()}`,
    tag_slugs: [one.slug, another.slug],
  })
  await write({ excerpt: null })
  const document = await api.upload(editor.token, 'text, "quoted" : here', {
    fields: { title: 'a, "b" : c', note: ' x ' },
  })
  await api.post(`/api/v1/documents/${document.json.id}/tags`, {
    token: editor.token,
    json: { label: 'a, "b"' },
  })
  const trashed = await api.upload(editor.token, 'trash', { fields: { title: 'd, "e" : f' } })
  await api.call('DELETE', `/api/v1/documents/${trashed.json.id}`, { token: editor.token })
  const job = await ledger.addFinished(editor.id)
  await ledger.addFinished(editor.id, 'failed', { code: 'internal', detail: 'it, "failed" : so' })
  const org = await api.post('/api/v1/orgs', {
    token: editor.token,
    json: { name: 'A : b', slug: createSlug('a-b') },
  })
  assertCompact(document.text, 'an upload')
  assertCompact(org.text, 'an organization')
  for (const path of [
    '/blog/posts',
    `/blog/posts?tag=${one.slug}`,
    `/blog/posts/${post.slug}`,
    '/blog/admin/posts',
    `/blog/admin/posts/${post.id}`,
    '/blog/tags',
    '/blog/export?format=json',
    '/documents',
    '/documents?search=quoted',
    '/documents?trashed=true',
    `/documents/${document.json.id}`,
    `/documents/${document.json.id}/pages`,
    '/documents/tags',
    '/jobs',
    `/jobs/${job}`,
    `/jobs/${job}/history`,
    '/tasks',
    '/auth/me',
    '/auth/users',
    '/auth/sessions',
    '/auth/keys',
    '/auth/passkeys',
    '/auth/me/export',
    '/auth/audit',
    '/orgs',
    '/orgs/all',
    `/orgs/${org.json.id}/members`,
    '/ai/agents',
    '/ai/usage/stats',
    '/system/tables',
    '/system/spending',
    '/llm/status',
    '/llm/models?limit=5',
    '/rag/collections',
    '/voice/settings',
  ]) {
    const full = /^\/(llm|rag|voice)/.test(path) ? path : `/api/v1${path}`
    const answers = await Promise.all([admin, editor].map(({ token }) => api.get(full, { token })))
    const good = answers.filter(({ status }) => status === 200)
    assert.ok(good.length > 0, `${path}: ${answers.map(({ status }) => status)}`)
    for (const { text } of good) assertCompact(text, path)
  }
  const changed = await call(editor, 'PUT', `/posts/${post.id}`, { json: { title: 'New' } })
  assertCompact(changed.text, 'a change')
  const stream = (await api.get(`/api/v1/jobs/${job}/events`, { token: editor.token })).text
  const frames = [...stream.matchAll(/^data: (.*)$/gm)].map(([, data]) => data!)
  assert.ok(frames.length > 0)
  for (const data of frames) assertCompact(data, 'a frame')
})
