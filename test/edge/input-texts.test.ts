import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { type AnyRoute, area, route } from '../../edge/pipeline/route.ts'
import { areas } from '../../edge/routes/index.ts'
import { getSharedEdge, startEdge } from './harness.ts'

/** Every route must reject JSON with unpaired surrogates, NUL, excessive depth or too many items. */

const Any = z.looseObject({})
const echoArea = area('echo', '/echo', { auth: 'public' }, [
  route({
    method: 'post',
    path: '/any',
    summary: 'any',
    body: Any,
    response: Any,
    handle: ({ body }) => body,
  }),
])
const { url } = await getSharedEdge()
const api = await startEdge(url, { areas: [...areas, echoArea], env: { AUTH_LEVEL: 'none' } })
const JSON_HEADERS = { 'content-type': 'application/json' }

const CANDIDATE_PARAMETERS = ['1', '0198c5a0-0000-7000-8000-000000000000', 'x', 'default']

/** Returns a path that the route's parameter schema accepts. */
function createPath(prefix: string, { path, params }: AnyRoute): string {
  const names = [...path.matchAll(/:(\w+)/g)].map(([, name]) => name!)
  const filled = names.reduce<Record<string, string>[]>(
    (sets, name) => sets.flatMap((set) => CANDIDATE_PARAMETERS.map((value) => ({ ...set, [name]: value }))),
    [{}],
  )
  const good = filled.find((set) => params === undefined || params.safeParse(set).success)
  assert.ok(good !== undefined, `${prefix}${path} takes none of ${CANDIDATE_PARAMETERS}`)
  return prefix + path.replace(/:(\w+)/g, (_, name: string) => good[name]!)
}

const operations = areas.flatMap(({ prefix, routes, invalidStatus }) =>
  routes
    .filter(({ body, bodyType = 'json' }) => body !== undefined && bodyType === 'json')
    .map((declared) => ({ declared, path: createPath(prefix, declared), invalidStatus })),
)

/** Returns a body with all fields of the type and an unpaired surrogate in every string. */
function createPoisonedBody(body: z.ZodType): string {
  interface Schema {
    readonly $ref?: string
    readonly $defs?: Readonly<Record<string, Schema>>
    readonly properties?: object
  }
  const schema = z.toJSONSchema(body, { io: 'input', unrepresentable: 'any' }) as Schema
  const { properties = {} } =
    schema.$ref === undefined ? schema : schema.$defs![schema.$ref.split('/').at(-1)!]!
  const fields = [...Object.keys(properties), 'more'].map((name) => `${JSON.stringify(name)}:"a\\ud800"`)
  return `{${fields.join(',')}}`
}

test('every operation with JSON rejects an unpaired surrogate', async () => {
  assert.ok(operations.length > 30, `${operations.length} operations`)
  for (const { declared, path, invalidStatus } of operations) {
    const bodies = [
      createPoisonedBody(declared.body!),
      '{"\\udc00":1}',
      '{"deep":[{"er":"\\udbff\\ud83d"}]}',
      '"\\ud800"',
    ]
    for (const body of bodies) {
      const answer = await api.call(declared.method.toUpperCase(), path, { body, headers: JSON_HEADERS })
      const what = `${declared.method} ${path} ${body}: ${answer.text}`
      assert.equal(answer.status, invalidStatus, what)
      for (const { loc, msg } of answer.json.errors) {
        assert.equal(loc[0], 'body', what)
        assert.match(msg, /an unpaired surrogate/, what)
      }
    }
  }
})

test('the error has its location; for keys, that of their object', async () => {
  const body = '{"fine":"\\ud83d\\ude00","bad":["a","\\ud83d"],"in":{"\\ude00":1,"nul\\u0000":2}}'
  const { status, json } = await api.post('/echo/any', { body, headers: JSON_HEADERS })
  assert.equal(status, 422)
  assert.deepEqual(json.errors, [
    { loc: ['body', 'bad', 1], msg: 'must not contain an unpaired surrogate', type: 'invalid_format' },
    {
      loc: ['body', 'in'],
      msg: 'must not have a key that contains an unpaired surrogate',
      type: 'invalid_key',
    },
    { loc: ['body', 'in'], msg: 'must not have a key that contains a NUL character', type: 'invalid_key' },
  ])
})

test('complete characters are accepted, and invalid bytes in a query are replaced', async () => {
  const body = '{"a":"\\ud83d\\ude00 \u{1f600} ä"}'
  assert.deepEqual((await api.post('/echo/any', { body, headers: JSON_HEADERS })).json, { a: '😀 😀 ä' })
  // Bytes that are not UTF-8 become U+FFFD in a query. A path with such bytes is rejected.
  assert.equal((await api.get('/api/v1/blog/posts?tag=%ED%A0%80')).status, 200)
  assert.equal((await api.get('/api/v1/blog/posts/%ED%A0%80')).status, 400)
})

test('a body deeper than 64 levels is rejected', async () => {
  const nested = (depth: number): string => `{"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`
  assert.equal((await api.post('/echo/any', { body: nested(64), headers: JSON_HEADERS })).status, 200)
  for (const depth of [65, 1000, 400_000]) {
    const { status, json } = await api.post('/echo/any', { body: nested(depth), headers: JSON_HEADERS })
    assert.deepEqual(
      [status, json.errors],
      [422, [{ loc: ['body', 'a'], msg: 'must not be nested more than 64 levels deep', type: 'too_big' }]],
    )
  }
})

test('a body with more than 10,000 keys and items is rejected', async () => {
  const list = (items: number): string => JSON.stringify({ a: Array.from({ length: items }, () => 0) })
  assert.equal((await api.post('/echo/any', { body: list(9_999), headers: JSON_HEADERS })).status, 200)
  for (const body of [
    list(10_000),
    list(500_000),
    JSON.stringify({ ...Array.from({ length: 10_001 }, () => []) }),
  ]) {
    const { status, json } = await api.post('/echo/any', { body, headers: JSON_HEADERS })
    assert.deepEqual(
      [status, json.errors],
      [
        422,
        [{ loc: ['body'], msg: 'must not have more than 10000 keys and items in total', type: 'too_big' }],
      ],
    )
  }
})

test("an error has at most 100 locations with keys of at most 100 characters, to limit the answer's size", async () => {
  const flaws = Object.fromEntries(Array.from({ length: 4900 }, (_, n) => [`a${n}`, '\0']))
  const body = JSON.stringify({ ['k'.repeat(100_000)]: flaws })
  const { status, text, json } = await api.post('/api/v1/auth/register', { body, headers: JSON_HEADERS })
  assert.equal(status, 422)
  assert.ok(text.length < 50_000, `${text.length} characters`)
  assert.equal(json.errors.length, 100)
  assert.deepEqual(json.errors[99].loc, ['body', 'k'.repeat(100), 'a99'])
})
