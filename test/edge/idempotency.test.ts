import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { failInvalidField } from '../../edge/pipeline/request/input.ts'
import { Answer, area, route } from '../../edge/pipeline/route.ts'
import { computeFingerprint } from '../../edge/pipeline/write/idempotency.ts'
import { areas } from '../../edge/routes/index.ts'
import { noRows, sql } from '../../sql/db.ts'
import { fail } from '../../sql/errors.ts'
import type { SecretKeys } from '../../tasks/platform/keys.ts'
import { FOREIGN_KEYS, TEST_KEYS } from '../keys.ts'
import { type Answered, PASSWORD, startEdge, startEdgeAndDatabase } from './harness.ts'

let effects = 0
let gate: {
  readonly entered: PromiseWithResolvers<void>
  readonly opens: PromiseWithResolvers<void>
} | null = null
const Count = z.object({ count: z.int() })
const FAILURES: Readonly<Record<string, () => Error>> = {
  500: () => new Error('unforeseen'),
  503: () => fail('database.busy'),
  429: () => fail('quota.waiting_jobs'),
  409: () => fail('document.protected'),
  422: () => failInvalidField('body', 'n', 'is not to my liking', 'custom'),
}
const countingRoute = route({
  method: 'post',
  path: '/count',
  summary: 'counts',
  query: z.object({ x: z.string().optional() }),
  body: z.object({ n: z.int().optional() }),
  response: Count,
  status: 201,
  sideEffect: true,
  handle: ({ transaction }) =>
    transaction(async () => {
      gate?.entered.resolve()
      await gate?.opens.promise
      const value = { count: ++effects }
      return new Answer({
        value,
        headers: [
          ['location', `/count/${effects}`],
          ['set-cookie', 'secret=1'],
        ],
      })
    }),
})
const failingRoute = route({
  method: 'post',
  path: '/fails/:how',
  summary: 'fails',
  params: z.object({ how: z.string() }),
  response: Count,
  errors: ['document.protected', 'quota.waiting_jobs'],
  sideEffect: true,
  handle: ({ params, transaction }) =>
    transaction(async () => {
      effects++
      throw FAILURES[params.how]!()
    }),
})
const keyedArea = area('keyed', '/k', { auth: 'user' }, [
  countingRoute,
  failingRoute,
  route({ ...(countingRoute as object), path: '/other' } as never),
  route({
    method: 'post',
    path: '/plain',
    summary: 'no key',
    response: Count,
    handle: () => ({ count: ++effects }),
  }),
  route({
    method: 'post',
    path: '/silent',
    summary: '204',
    sideEffect: true,
    handle: ({ transaction }) => transaction(async () => void ++effects),
  }),
  route({
    method: 'post',
    path: '/notes-and-refuses',
    summary: 'what it wrote stays',
    response: Count,
    errors: ['document.protected'],
    sideEffect: true,
    handle: ({ transaction }) =>
      transaction(async (tx) => {
        await tx.run(sql.type(noRows)`insert into effect values (${++effects})`)
        return fail('document.protected')
      }),
  }),
  route({
    method: 'post',
    path: '/writes-and-refuses',
    summary: 'what it wrote is undone',
    response: Count,
    errors: ['document.protected'],
    sideEffect: true,
    handle: ({ transaction }) =>
      transaction(async (tx) => {
        await tx.run(sql.type(noRows)`insert into effect values (${++effects})`)
        tx.afterCommit(() => assert.fail('nothing was committed'))
        throw fail('document.protected')
      }),
  }),
  route({
    method: 'post',
    path: '/beside',
    summary: 'forgets its transaction',
    response: Count,
    sideEffect: true,
    handle: () => ({ count: ++effects }),
  }),
])
const lenientArea = area('lenient', '/l', { auth: 'user', invalidStatus: 400 }, [failingRoute])
const openArea = area('tasks', '/o', { auth: 'open' }, [countingRoute])
const { api, query, url } = await startEdgeAndDatabase({ areas: [...areas, keyedArea, lenientArea] })
const anonymousEdge = await startEdge(url, { areas: [openArea], env: { TRUST_PROXY: 'true' } })
await query('create table effect (n int)')
const [ann, bob] = [await api.register('ann@example.com'), await api.register('bob@example.com')]
let lastKey = 0
const createKey = (): string => `key-${++lastKey}`
const post = (path: string, key: string, json: unknown = {}, token = ann.token) =>
  api.post(path, { token, json, headers: { 'idempotency-key': key } })

function assertReplay(again: Answered, first: Answered): void {
  assert.deepEqual([again.status, again.text], [first.status, first.text])
  assert.equal(again.headers['content-type'], first.headers['content-type'])
  assert.notEqual(again.headers['x-request-id'], first.headers['x-request-id'], 'a request of its own')
}

test('the same key and request replay the first answer without a second effect', async () => {
  const key = createKey()
  const first = await post('/k/count', key, { n: 1 })
  assert.equal(first.status, 201)
  const before = effects
  for (let i = 0; i < 3; i++) {
    const again = await post('/k/count', key, { n: 1 })
    assertReplay(again, first)
    assert.equal(again.headers.location, first.headers.location)
  }
  assert.equal(effects, before)
})

test('cookies are neither stored nor replayed', async () => {
  const key = createKey()
  assert.deepEqual((await post('/k/count', key)).cookies, ['secret=1'])
  assert.deepEqual((await post('/k/count', key)).cookies, [])
  const [row] = await query('select headers::text as headers from idempotency_key where key = $1', [key])
  assert.doesNotMatch(row!.headers as string, /cookie|secret/)
})

test('a replayed answer is marked, refusals too; the first is not', async () => {
  for (const [path, first] of [
    ['/k/count', 201],
    ['/k/silent', 204],
    ['/k/fails/409', 409],
    ['/k/notes-and-refuses', 409],
  ] as const) {
    const key = createKey()
    const answers = [await post(path, key), await post(path, key), await post(path, key)]
    assert.deepEqual(
      answers.map(({ status, headers }) => [status, headers['idempotent-replayed']]),
      [
        [first, undefined],
        [first, 'true'],
        [first, 'true'],
      ],
      path,
    )
  }
})

test('requests without a key, or to routes without effects, always run', async () => {
  const before = effects
  for (let i = 0; i < 2; i++) await api.post('/k/count', { token: ann.token, json: {} })
  const key = createKey()
  for (let i = 0; i < 2; i++) await post('/k/plain', key)
  assert.equal(effects, before + 4)
})

test('the same key with another body or query is 422 in the usual format', async () => {
  const key = createKey()
  await post('/k/count', key, { n: 1 })
  const before = effects
  for (const answer of [await post('/k/count', key, { n: 2 }), await post('/k/count?x=1', key, { n: 1 })]) {
    assert.equal(answer.status, 422)
    assert.match(answer.json.detail, /Idempotency-Key was already used/)
    assert.deepEqual(
      answer.json.errors.map(({ loc }: { loc: unknown }) => loc),
      [['header', 'idempotency-key']],
    )
  }
  assert.equal(effects, before)
})

test('a request during the first one is 409, and afterwards gets the first answer', async () => {
  const { entered, opens } = { entered: Promise.withResolvers<void>(), opens: Promise.withResolvers<void>() }
  gate = { entered, opens }
  const key = createKey()
  const first = post('/k/count', key)
  await entered.promise
  const second = await post('/k/count', key)
  assert.deepEqual(
    [second.status, second.json],
    [
      409,
      { detail: 'The first request with this Idempotency-Key is still running', code: 'idempotency.running' },
    ],
  )
  gate = null
  opens.resolve()
  const answer = await first
  assertReplay(await post('/k/count', key), answer)
})

test('one of twenty concurrent requests takes effect; the others get 409 or its answer', async () => {
  const key = createKey()
  const before = effects
  const answers = await Promise.all(Array.from({ length: 20 }, () => post('/k/count', key)))
  assert.equal(effects, before + 1)
  for (const answer of answers) assert.ok(answer.status === 409 || answer.json.count === effects, answer.text)
  assert.ok(answers.some(({ status }) => status === 201))
})

test('the same key of another caller or on another route is independent', async () => {
  const key = createKey()
  const counts = [
    await post('/k/count', key),
    await post('/k/count', key, {}, bob.token),
    await post('/k/other', key),
  ].map(({ json }) => json.count)
  assert.equal(new Set(counts).size, 3)
  assert.equal((await post('/k/count', key, {}, bob.token)).json.count, counts[1])
})

test("an anonymous caller's key belongs to its address", async () => {
  const from = async (address: string) => {
    const headers = { 'idempotency-key': 'shared', 'x-forwarded-for': address }
    const answer = await anonymousEdge.post('/o/count', { headers, json: {} })
    return answer.json.count
  }
  const first = await from('192.0.2.1')
  assert.equal(await from('192.0.2.1'), first)
  const second = await from('192.0.2.2')
  assert.notEqual(second, first)
  assert.deepEqual([await from('192.0.2.2'), await from('192.0.2.1')], [second, first])
  const network = await from('2001:db8::1')
  assert.deepEqual([await from('2001:db8::2'), (await from('2001:db8:0:1::1')) > network], [network, true])
})

test('a key is valid for 24 hours', async () => {
  const key = createKey()
  const first = await post('/k/count', key, { n: 1 })
  const age = (interval: string) =>
    query(`update idempotency_key set created_at = now() - $2::interval where key = $1`, [key, interval])
  await age('23 hours 59 minutes')
  assertReplay(await post('/k/count', key, { n: 1 }), first)
  await age('24 hours 1 second')
  const anew = await post('/k/count', key, { n: 2 })
  assert.deepEqual([anew.status, anew.json.count], [201, effects])
  assert.notEqual(anew.json.count, first.json.count)
  assertReplay(await post('/k/count', key, { n: 2 }), anew)
})

test('a returned refusal keeps its writes, a thrown one does not, and both are replayed', async () => {
  const written = async () => (await query('select count(*)::int as n from effect'))[0]!.n as number
  for (const [path, rows] of [
    ['/k/notes-and-refuses', 1],
    ['/k/writes-and-refuses', 0],
  ] as const) {
    const [key, before, already] = [createKey(), effects, await written()]
    const first = await post(path, key)
    assert.equal(first.status, 409)
    assertReplay(await post(path, key), first)
    assert.deepEqual([effects - before, (await written()) - already], [1, rows])
  }
})

test('a route with an effect outside its transaction is detected', async () => {
  assert.equal((await post('/k/beside', createKey())).status, 500)
})

test('every POST accepts a key or declares why repetition is harmless', () => {
  const silent = areas.flatMap(({ name, routes }) =>
    routes
      .filter(
        (one) => one.method === 'post' && (one.sideEffect === true) === (one.whyRepeatable !== undefined),
      )
      .map(({ path }) => `${name} ${path}`),
  )
  assert.deepEqual(silent, [])
})

test('a transient failure releases the key', async () => {
  for (const how of ['429', '500', '503']) {
    const key = createKey()
    const before = effects
    for (let i = 1; i <= 2; i++) {
      assert.equal((await post(`/k/fails/${how}`, key)).status, Number(how))
      assert.equal(effects, before + i, 'it was tried again')
    }
    assert.deepEqual(await query('select 1 from idempotency_key where key = $1', [key]), [])
  }
})

test('a refusal is replayed like any other answer, with all its problems', async () => {
  for (const [path, status] of [
    ['/k/fails/409', 409],
    ['/k/fails/422', 422],
    ['/l/fails/422', 400],
  ] as const) {
    const key = createKey()
    const first = await post(path, key)
    assert.equal(first.status, status)
    const before = effects
    assertReplay(await post(path, key), first)
    assert.equal(effects, before)
  }
})

test('input rejected before any effect uses up no key', async () => {
  const key = createKey()
  assert.equal((await post('/k/count', key, { n: 'x' })).status, 422)
  assert.equal((await post('/k/count', key, { n: 1 })).status, 201)
})

test('an answer without a body is replayed without one', async () => {
  const key = createKey()
  const before = effects
  for (let i = 0; i < 2; i++) {
    const answer = await post('/k/silent', key)
    assert.deepEqual(
      [answer.status, answer.bytes.length, answer.headers['content-type']],
      [204, 0, undefined],
    )
  }
  assert.equal(effects, before + 1)
})

test('a key has at most 255 characters', async () => {
  const longest = 'k'.repeat(255)
  assert.equal((await post('/k/count', longest)).status, 201)
  const answer = await post('/k/count', `${longest}k`)
  assert.deepEqual([answer.status, answer.json.errors[0].loc], [422, ['header', 'idempotency-key']])
})

test('a repeated registration returns the account without its cookies', async () => {
  const json = { email: 'carl@example.com', password: PASSWORD }
  const register = (body: object) =>
    api.post('/api/v1/auth/register', { json: body, headers: { 'idempotency-key': 'registration' } })
  const first = await register(json)
  assert.equal(first.cookies.length, 3)
  const again = await register(json)
  assertReplay(again, first)
  assert.deepEqual(again.cookies, [])
  assert.equal(again.headers['cache-control'], 'no-store')
  assert.equal((await register({ ...json, email: 'dora@example.com' })).status, 422)
  const [kept] = await query(
    `select body, headers::text as headers from idempotency_key where key = 'registration'`,
  )
  assert.doesNotMatch(`${kept!.body}${kept!.headers}`, /eyJ|correct horse|millrace_/)
})

test('the stored request fingerprint reveals nothing about its password', async () => {
  const path = '/api/v1/auth/register'
  const body = JSON.stringify({ email: 'kept@example.com', password: PASSWORD })
  const headers = { 'content-type': 'application/json', 'idempotency-key': 'told' }
  assert.equal((await api.post(path, { body, headers })).status, 200)
  const [kept] = await query(`select fingerprint from idempotency_key where key = 'told'`)
  const of = (keys: SecretKeys) => computeFingerprint(keys, 'POST', path, '', Buffer.from(body))
  assert.deepEqual(Buffer.from(kept!.fingerprint as Uint8Array), of(TEST_KEYS))
  assert.notDeepEqual(of(TEST_KEYS), of(FOREIGN_KEYS), 'a guess needs the key of the deployment')
})

test('a repeated upload is stored once and leaves nothing behind', async () => {
  const blobs = async () => (await query('select count(*)::int as n from blob'))[0]!.n
  const upload = (bytes: string, options = {}) =>
    api.upload(ann.token, bytes, { ...options, headers: { 'idempotency-key': 'upload' } })
  const first = await upload('once', { name: 'a.txt', fields: { title: 'T' } })
  assert.equal(first.status, 201)
  const before = await blobs()
  const again = await upload('once', { name: 'a.txt', fields: { title: 'T' } })
  assertReplay(again, first)
  assert.equal(again.headers.location, `/api/v1/documents/${first.json.id}`)
  assert.equal((await upload('twice', { name: 'a.txt', fields: { title: 'T' } })).status, 422, 'other bytes')
  assert.equal((await upload('once', { name: 'a.txt', fields: { title: 'U' } })).status, 422, 'another field')
  assert.equal((await upload('once', { name: 'b.txt', fields: { title: 'T' } })).status, 422, 'another name')
  assert.equal(await blobs(), before)
})
