import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { failInvalidField } from '../../edge/pipeline/request/input.ts'
import { count, RowId } from '../../edge/pipeline/request/schemas.ts'
import { area, route } from '../../edge/pipeline/route.ts'
import { type Answered, type Api, startEdge, startEdgeAndDatabase } from './harness.ts'

const Body = z.strictObject({
  name: z.string().min(2),
  size: z.int().max(10).default(1),
  tags: z.array(z.string()).optional(),
})
const echoBody = ({ body }: { body: unknown }) => body
const List = z.object({ page: count({ min: 1, max: 5, fallback: 1 }), kind: z.string().optional() })
const routes = [
  route({
    method: 'post',
    path: '/json',
    summary: 'json',
    body: Body,
    response: z.looseObject({}),
    handle: echoBody as never,
  }),
  route({
    method: 'post',
    path: '/form',
    summary: 'form',
    bodyType: 'form',
    body: z.object({ name: z.string().min(2) }),
    response: z.looseObject({}),
    handle: echoBody as never,
  }),
  route({
    method: 'get',
    path: '/list',
    summary: 'list',
    query: List,
    response: z.looseObject({}),
    handle: ({ query }) => query,
  }),
  route({
    method: 'get',
    path: '/rows/:id',
    summary: 'row',
    params: z.object({ id: RowId }),
    response: z.int(),
    handle: ({ params }) => params.id,
  }),
  route({
    method: 'post',
    path: '/much',
    summary: 'takes more',
    body: z.object({ name: z.string() }),
    bodyBytes: 2 ** 21,
    response: z.int(),
    handle: ({ body }) => body.name.length,
  }),
  route({
    method: 'get',
    path: '/refusing',
    summary: 'refuses',
    response: z.string(),
    handle: () => {
      throw failInvalidField('header', 'x-thing', 'must be nice', 'custom')
    },
  }),
]
const areas = [
  area('strict', '/a', { auth: 'public' }, routes),
  area('lenient', '/b', { auth: 'public', invalidStatus: 400 }, routes),
]
const LIMIT = 2000
const { api, url } = await startEdgeAndDatabase({ areas, env: { MAX_JSON_BYTES: String(LIMIT) } })

function assertProblems(answer: Answered, status: number, locations: unknown[][]): void {
  assert.equal(answer.status, status, answer.text)
  const { detail, errors, code, ...rest } = answer.json
  assert.deepEqual([code, rest], ['request.invalid', {}])
  assert.deepEqual(
    errors.map(({ loc }: { loc: unknown[] }) => loc),
    locations,
  )
  for (const { loc, msg, type, ...more } of errors) {
    assert.deepEqual(more, {})
    assert.ok(typeof msg === 'string' && msg.length > 0 && typeof type === 'string' && type.length > 0)
    assert.ok(['body', 'query', 'path', 'header'].includes(loc[0]))
  }
  assert.ok(detail.endsWith(errors[0].msg), `the detail "${detail}" says the first problem`)
  if (errors[0].loc.length > 1)
    assert.ok(detail.startsWith(errors[0].loc.slice(1).join('.')), 'and names its place')
}

test('a valid body arrives with its defaults', async () => {
  const answer = await api.post('/a/json', { json: { name: 'ab' } })
  assert.deepEqual([answer.status, answer.json], [200, { name: 'ab', size: 1 }])
})

test('invalid input is 422 with every problem and its location', async () => {
  const answer = await api.post('/a/json', { json: { name: 'a', size: 11, tags: ['x', 1] } })
  assertProblems(answer, 422, [
    ['body', 'name'],
    ['body', 'size'],
    ['body', 'tags', 1],
  ])
})

test('locations may start with query, path or header', async () => {
  assertProblems(await api.get('/a/list?page=0'), 422, [['query', 'page']])
  assertProblems(await api.get('/a/rows/x'), 422, [['path', 'id']])
  assertProblems(await api.get('/a/refusing'), 422, [['header', 'x-thing']])
})

test('a missing body is an error at `body`', async () => {
  assertProblems(await api.post('/a/json'), 422, [['body']])
  assertProblems(await api.post('/a/json', { headers: { 'content-type': 'application/json' } }), 422, [
    ['body'],
  ])
  assertProblems(await api.post('/a/json', { json: null }), 422, [['body']])
  assertProblems(await api.post('/a/json', { json: ['name'] }), 422, [['body']])
  assertProblems(await api.post('/a/form'), 422, [['body', 'name']])
})

test('an area may use 400 for invalid input, in the same format', async () => {
  assertProblems(await api.post('/b/json', { json: { name: 'a' } }), 400, [['body', 'name']])
  assertProblems(await api.get('/b/list?page=6'), 400, [['query', 'page']])
  assertProblems(await api.get('/b/rows/0'), 400, [['path', 'id']])
  assertProblems(await api.get('/b/refusing'), 400, [['header', 'x-thing']])
})

test('unknown fields are rejected by name', async () => {
  const answer = await api.post('/a/json', { json: { name: 'ab', nmae: 'typo' } })
  assertProblems(answer, 422, [['body']])
  assert.match(answer.json.detail, /nmae/)
})

test('unknown query parameters are rejected by name', async () => {
  const answer = await api.get('/a/list?page=2&utm_source=x&__proto__=y&constructor=z')
  assertProblems(answer, 422, [
    ['query', 'utm_source'],
    ['query', '__proto__'],
    ['query', 'constructor'],
  ])
})

test('numbers out of range are rejected, never clamped', async () => {
  for (const page of ['0', '-1', '6', '1.5', '1e0', '', 'x', '99999999999', ' 1', '0x1', 'NaN']) {
    const answer = await api.get(`/a/list?page=${encodeURIComponent(page)}`)
    assertProblems(answer, 422, [['query', 'page']])
  }
  for (const [page, value] of [
    ['1', 1],
    ['5', 5],
  ] as const)
    assert.equal((await api.get(`/a/list?page=${page}`)).json.page, value)
})

test('an id is a positive integer that the database can hold', async () => {
  for (const id of ['0', '-1', '2147483648', '99999999999', '1.0', 'one', '1%20', '%31%00']) {
    assertProblems(await api.get(`/a/rows/${id}`), 422, [['path', 'id']])
  }
  assert.equal((await api.get('/a/rows/2147483647')).json, 2147483647)
})

test('malformed JSON is 400', async () => {
  for (const body of ['{', '{"name":}', "{'name':'ab'}", 'undefined', '{"name":"ab"} x', '\u0000']) {
    const answer = await api.post('/a/json', { body, headers: { 'content-type': 'application/json' } })
    assert.deepEqual(
      [answer.status, answer.json],
      [
        400,
        { detail: 'The request could not be read: the body is not valid JSON', code: 'request.malformed' },
      ],
    )
  }
})

test('invalid UTF-8 is 400', async () => {
  const body = Buffer.concat([Buffer.from('{"name":"'), Buffer.from([0xc3, 0x28]), Buffer.from('"}')])
  for (const [path, type] of [
    ['/a/json', 'application/json'],
    ['/a/form', 'application/x-www-form-urlencoded'],
  ] as const) {
    const answer = await api.post(path, { body, headers: { 'content-type': type } })
    assert.equal(answer.status, 400)
    assert.match(answer.json.detail, /not valid UTF-8/)
  }
})

test('a NUL character is 422 at its location, because no text column can hold it', async () => {
  assertProblems(await api.post('/a/json', { json: { name: 'a\0b', tags: ['fine', 'no\0'] } }), 422, [
    ['body', 'name'],
    ['body', 'tags', 1],
  ])
  assertProblems(await api.post('/a/form', { form: { name: 'a\0b' } }), 422, [['body', 'name']])
  assertProblems(await api.get('/a/list?kind=%00'), 422, [['query', 'kind']])
})

test('a wrong content type is 415 and names the right one', async () => {
  const types = [
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonp',
    '',
  ]
  for (const type of types) {
    const answer = await api.post('/a/json', {
      body: '{"name":"ab"}',
      headers: type === '' ? {} : { 'content-type': type },
    })
    assert.deepEqual(
      [answer.status, answer.json],
      [415, { detail: 'Content-Type must be application/json', code: 'request.media_type' }],
      type,
    )
  }
  const answer = await api.post('/a/form', { json: { name: 'ab' } })
  assert.deepEqual(
    [answer.status, answer.json],
    [415, { detail: 'Content-Type must be application/x-www-form-urlencoded', code: 'request.media_type' }],
  )
})

test('content type parameters and case are ignored', async () => {
  for (const type of [
    'application/json; charset=utf-8',
    'Application/JSON',
    'application/json;charset=UTF-8',
    'application/problem+json',
  ]) {
    assert.equal(
      (await api.post('/a/json', { body: '{"name":"ab"}', headers: { 'content-type': type } })).status,
      200,
      type,
    )
  }
})

test('a body over MAX_JSON_BYTES is 413, and one of exactly that size is accepted', async () => {
  const sized = (bytes: number) =>
    JSON.stringify({ name: 'x'.repeat(bytes - JSON.stringify({ name: '' }).length) })
  const send = (body: string, headers = {}) =>
    api.post('/a/json', { body, headers: { 'content-type': 'application/json', ...headers } })
  assert.equal((await send(sized(LIMIT))).status, 200)
  const answer = await send(sized(LIMIT + 1))
  assert.deepEqual(
    [answer.status, answer.json],
    [413, { detail: `The body is larger than the limit of ${LIMIT} bytes`, code: 'request.too_large' }],
  )
  const chunked = await send(sized(LIMIT + 1), { 'transfer-encoding': 'chunked' })
  assert.equal(chunked.status, 413, 'also when the length is not announced')
  assert.equal((await api.get('/a/list')).status, 200)
})

test('MAX_JSON_BYTES also applies to routes with a higher default', async () => {
  const body = JSON.stringify({ name: 'x'.repeat(2 ** 20) })
  const send = (edge: Api, path: string, text = body) =>
    edge.post(path, { body: text, headers: { 'content-type': 'application/json' } })
  assert.equal((await send(api, '/a/much')).status, 413)
  const unset = await startEdge(url, { areas })
  assert.equal((await send(unset, '/a/much')).status, 200)
  assert.equal((await send(unset, '/a/much', JSON.stringify({ name: 'x'.repeat(2 ** 21) }))).status, 413)
  assert.equal((await send(unset, '/a/json')).status, 413)
})

test('a form over MAX_JSON_BYTES is 413', async () => {
  assert.equal((await api.post('/a/form', { form: { name: 'x'.repeat(LIMIT) } })).status, 413)
})

test('a key named __proto__ is harmless', async () => {
  const body = '{"name":"ab","__proto__":{"size":3}}'
  const answer = await api.post('/a/json', { body, headers: { 'content-type': 'application/json' } })
  assert.equal(answer.status, 422)
  assert.equal(({} as { size?: number }).size, undefined)
})
