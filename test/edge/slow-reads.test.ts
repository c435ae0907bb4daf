import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import { areas } from '../../edge/routes/index.ts'
import { createTestDatabase } from '../database.ts'
import { until } from '../until.ts'
import { type Api, createMultipart, startEdge } from './harness.ts'
import { createPeopleMaker } from './orgs-help.ts'

/** A slow read must not delay other requests. */

const { url, query } = await createTestDatabase()
// Far longer than the test takes.
const api = await startEdge(url, { env: { LIST_TIMEOUT_SECONDS: '600' } })
const hastyEdge = await startEdge(url, { env: { LIST_TIMEOUT_SECONDS: '1' } })
const createPeople = createPeopleMaker(api, query)

test('every list route is declared as a list', () => {
  const listing = areas.flatMap(({ prefix, routes }) =>
    routes.flatMap(({ method, path, query: schema, reads }) => {
      const names = Object.keys((schema as { shape?: object } | undefined)?.shape ?? {})
      const lists = method === 'get' && names.some((name) => ['page', 'page_size', 'limit'].includes(name))
      return lists && reads === undefined ? [prefix + path] : []
    }),
  )
  assert.deepEqual(listing, [])
})

test('while lists wait, reads by key succeed, and lists are rejected after their limit', async () => {
  const [who] = await createPeople(1)
  const { body, type } = createMultipart('kept')
  const headers = { 'content-type': type }
  const uploaded = await api.call('POST', '/api/v1/documents', { token: who!.token, body, headers })
  assert.equal(uploaded.status, 201, uploaded.text)
  const { id } = uploaded.json
  const holder = new pg.Client({ connectionString: url })
  await holder.connect()
  await holder.query('begin')
  await holder.query('lock table blog_tag in access exclusive mode')
  const tags = (edge: Api) => edge.call('GET', '/api/v1/blog/tags', { token: who!.token })
  const lists = Array.from({ length: 5 }, () => tags(api))
  await until('a list waits for the lock', async () => {
    const waiting = await query(`select from pg_locks where relation = 'blog_tag'::regclass and not granted`)
    return waiting.length > 0
  })
  const document = await api.call('GET', `/api/v1/documents/${id}`, { token: who!.token })
  assert.equal(document.status, 200, 'while the lists still wait')
  const waiting = await query(`select from pg_locks where relation = 'blog_tag'::regclass and not granted`)
  assert.ok(waiting.length > 0)
  for (const answer of await Promise.all(Array.from({ length: 5 }, () => tags(hastyEdge)))) {
    assert.deepEqual([answer.status, answer.headers['retry-after']], [503, '1'])
    assert.match(answer.json.detail, /exceeded its time limit|overloaded/)
  }
  await holder.query('rollback')
  await holder.end()
  for (const answer of await Promise.all([...lists, tags(api)])) assert.equal(answer.status, 200)
})
