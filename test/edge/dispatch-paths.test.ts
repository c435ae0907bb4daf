import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { createMatcher } from '../../edge/pipeline/request/match.ts'
import { area, route } from '../../edge/pipeline/route.ts'
import { Client } from './fixtures/raw.ts'
import { startEdge, startEdgeAndDatabase } from './harness.ts'

const respondOk = () => ({ ok: true })
const Ok = z.object({ ok: z.boolean() })
const thingsArea = area('things', '/things', { auth: 'public' }, [
  route({ method: 'get', path: '', summary: 'all', response: Ok, handle: respondOk }),
  route({ method: 'post', path: '', summary: 'make', response: Ok, status: 201, handle: respondOk }),
  route({
    method: 'get',
    path: '/special',
    summary: 'literal',
    response: z.string(),
    handle: () => 'literal',
  }),
  route({
    method: 'get',
    path: '/:name',
    summary: 'one',
    params: z.object({ name: z.string() }),
    response: z.string(),
    handle: ({ params }) => params.name,
  }),
  route({
    method: 'delete',
    path: '/:name',
    summary: 'remove',
    params: z.object({ name: z.string() }),
    handle: () => undefined,
  }),
])
const ALLOWED_ORIGIN = 'https://app.example.com'
const { api, url } = await startEdgeAndDatabase({
  areas: [thingsArea],
  env: { CORS_ORIGINS: `${ALLOWED_ORIGIN},https://b.example` },
})
const noCorsEdge = await startEdge(url, { areas: [thingsArea] })

test('an unknown path is 404 with a detail and a request id', async () => {
  for (const path of ['/nothing', '/', '/things/a/b', '/Things', '//things']) {
    const answer = await api.get(path)
    assert.equal(answer.status, 404, path)
    assert.deepEqual(answer.json, { detail: 'No such path', code: 'route.missing' })
    assert.equal(answer.headers['content-type'], 'application/json; charset=utf-8')
    assert.match(answer.headers['x-request-id'] as string, /^[\w-]{8,}$/)
  }
})

test('an empty segment does not match a parameter', async () => {
  assert.equal((await api.get('/things/')).status, 404)
})

test('a wrong method is 405 and lists the allowed ones', async () => {
  const answer = await api.call('PUT', '/things', { json: {} })
  assert.equal(answer.status, 405)
  assert.equal(answer.headers.allow, 'GET, POST, HEAD, OPTIONS')
  assert.deepEqual(answer.json, {
    detail: 'Method not allowed; this path accepts GET, POST, HEAD, OPTIONS',
    code: 'route.method',
  })
})

test('HEAD of a path without GET is 405', async () => {
  const deleteOnly = area('d', '/d', { auth: 'public' }, [
    route({ method: 'delete', path: '', summary: 'd', handle: () => undefined }),
  ])
  const other = await startEdge(url, { areas: [deleteOnly] })
  const answer = await other.call('HEAD', '/d')
  assert.deepEqual([answer.status, answer.headers.allow, answer.bytes.length], [405, 'DELETE, OPTIONS', 0])
})

test('an unknown method is 405', async (t) => {
  const client = await Client.connect(t, api.port)
  const { text } = await client
    .send('FROBNICATE /things HTTP/1.1\r\nHost: localhost\r\n\r\n')
    .waitForText('\r\n\r\n')
  assert.match(text, /^HTTP\/1\.1 405 /)
  assert.match(text, /\r\nallow: GET, POST, HEAD, OPTIONS\r\n/)
})

test('OPTIONS is 204 with the methods of the path, and 404 for an unknown path', async () => {
  const answer = await noCorsEdge.call('OPTIONS', '/things/x')
  assert.deepEqual(
    [answer.status, answer.headers.allow, answer.bytes.length],
    [204, 'GET, DELETE, HEAD, OPTIONS', 0],
  )
  assert.equal(answer.headers['access-control-allow-origin'], undefined)
  assert.equal((await noCorsEdge.call('OPTIONS', '/nothing')).status, 404)
})

test('a literal segment takes precedence over a parameter', async () => {
  assert.equal((await api.get('/things/special')).json, 'literal')
  assert.equal((await api.get('/things/other')).json, 'other')
})

test('a parameter is percent-decoded, and invalid encoding is 400', async () => {
  assert.equal((await api.get('/things/caf%C3%A9%2F%20x')).json, 'café/ x')
  for (const path of ['/things/%zz', '/things/%', '/things/%C3', '/things/%ff']) {
    const answer = await api.get(path)
    assert.equal(answer.status, 400, path)
    assert.deepEqual(answer.json, {
      detail: 'The request could not be read: the path is not valid percent-encoding',
      code: 'request.malformed',
    })
  }
})

test('a page of an allowed origin may read answers, with credentials', async () => {
  const answer = await api.get('/things', { headers: { origin: ALLOWED_ORIGIN } })
  assert.equal(answer.headers['access-control-allow-origin'], ALLOWED_ORIGIN)
  assert.equal(answer.headers['access-control-allow-credentials'], 'true')
  assert.match(answer.headers['access-control-expose-headers'] as string, /x-request-id/)
  assert.match(answer.headers.vary as string, /origin/)
})

test('a page of another origin may not read answers, which vary by Origin', async () => {
  for (const origin of [
    'https://evil.example',
    `${ALLOWED_ORIGIN}.evil.example`,
    'null',
    'http://app.example.com',
    '',
  ]) {
    const answer = await api.get('/things', { headers: origin === '' ? {} : { origin } })
    assert.equal(answer.status, 200)
    const cors = Object.keys(answer.headers).filter((name) => name.startsWith('access-control'))
    assert.deepEqual(cors, [], origin)
    assert.match(answer.headers.vary as string, /origin/)
  }
})

test('allowed pages can read refusals, too', async () => {
  for (const path of ['/nothing', '/things/%zz']) {
    const answer = await api.get(path, { headers: { origin: ALLOWED_ORIGIN } })
    assert.equal(answer.headers['access-control-allow-origin'], ALLOWED_ORIGIN)
  }
})

test('a preflight of an allowed origin gets methods, headers and a max age', async () => {
  const headers = { origin: ALLOWED_ORIGIN, 'access-control-request-method': 'POST' }
  const answer = await api.call('OPTIONS', '/things', { headers })
  assert.equal(answer.status, 204)
  assert.equal(answer.headers['access-control-allow-origin'], ALLOWED_ORIGIN)
  assert.equal(answer.headers['access-control-allow-credentials'], 'true')
  assert.equal(answer.headers['access-control-allow-methods'], 'GET, POST, HEAD, OPTIONS')
  const allowed = (answer.headers['access-control-allow-headers'] as string).split(', ')
  const usual = ['authorization', 'content-type', 'idempotency-key', 'last-event-id', 'prefer', 'traceparent']
  for (const name of usual) assert.ok(allowed.includes(name), name)
  assert.match(answer.headers['access-control-max-age'] as string, /^\d+$/)
})

test('a preflight of another origin is not allowed', async () => {
  const headers = { origin: 'https://evil.example', 'access-control-request-method': 'POST' }
  const answer = await api.call('OPTIONS', '/things', { headers })
  assert.equal(answer.headers['access-control-allow-origin'], undefined)
  assert.equal(answer.headers['access-control-allow-credentials'], undefined)
})

test('HEAD has the headers of GET and no body', async (t) => {
  const get = await api.get('/things')
  const client = await Client.connect(t, api.port)
  const { text } = await client
    .send(
      'HEAD /things HTTP/1.1\r\nHost: localhost\r\n\r\nGET /things/next HTTP/1.1\r\nHost: localhost\r\n\r\n',
    )
    .waitForText('"next"')
  const [head = '', next = ''] = text.split('\r\n\r\n', 2)
  assert.match(head, /^HTTP\/1\.1 200 OK\r\n/)
  assert.match(head.toLowerCase(), new RegExp(`\r\ncontent-length: ${get.bytes.length}(\r\n|$)`))
  assert.match(head, /content-type: application\/json/)
  assert.match(next, /^HTTP\/1\.1 200 OK/, 'what follows the head is the next answer')
})

test('every answer has its own request id', async () => {
  const ids = await Promise.all(
    Array.from({ length: 20 }, async () => (await api.get('/things')).headers['x-request-id']),
  )
  assert.equal(new Set(ids).size, 20)
  for (const id of ids) assert.match(id as string, /^[A-Za-z0-9._:-]{1,64}$/)
})

test('a valid request id of the client is kept', async () => {
  for (const id of ['a', 'trace-1:2.3_4', 'x'.repeat(64)]) {
    assert.equal((await api.get('/things', { headers: { 'x-request-id': id } })).headers['x-request-id'], id)
  }
})

test('any other request id is replaced', async () => {
  for (const id of ['', 'x'.repeat(65), 'a b', '"quoted"', 'a\tb', '<script>', 'ü', 'a,b', '{}']) {
    const answer = await api.get('/things', { headers: { 'x-request-id': id } })
    assert.equal(answer.status, 200)
    assert.notEqual(answer.headers['x-request-id'], id)
    assert.match(answer.headers['x-request-id'] as string, /^[A-Za-z0-9._:-]{8,64}$/)
  }
})

test('conflicting routes fail at startup', () => {
  const get = route({ method: 'get', path: '/x', summary: 'x', response: z.string(), handle: () => '' })
  const twice = [area('one', '/a', { auth: 'public' }, [get]), area('two', '/a', { auth: 'public' }, [get])]
  assert.throws(() => createMatcher(twice), /Two routes for GET \/a\/x/)
})

test('conflicting parameter names fail at startup', () => {
  const of = (path: string, method: 'get' | 'delete') =>
    route({ method, path, summary: 'x', response: z.string(), handle: () => '' })
  const both = [area('one', '', { auth: 'public' }, [of('/:id', 'get'), of('/:name', 'delete')])]
  assert.throws(() => createMatcher(both), /Two parameter names for one path segment/)
})
