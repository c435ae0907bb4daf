import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { area, route } from '../../edge/pipeline/route.ts'
import { areas } from '../../edge/routes/index.ts'
import { type CallOptions, startEdge, startEdgeAndDatabase } from './harness.ts'
import { createLedger } from './ledger.ts'

/** Tests access without a credential, and protection against requests from pages of other sites. */

const whoArea = area('who', '/who', { auth: 'admin' }, [
  route({
    method: 'post',
    path: '',
    summary: 'shows the caller',
    response: z.looseObject({}),
    handle: ({ caller }) => ({ id: caller.id, ownerId: caller.ownerId, role: caller.role }),
  }),
])
const CLOSED_ENV = { OPEN_AREAS: 'ai' }
const { api: closed, ...database } = await startEdgeAndDatabase({
  env: { ...CLOSED_ENV, CORS_ORIGINS: 'https://app.example.com' },
})
const openEdge = await startEdge(database.url, { env: { OPEN_AREAS: 'jobs,ai' } })
const noAuthEdge = await startEdge(database.url, {
  env: { AUTH_LEVEL: 'none', ...CLOSED_ENV },
  areas: [...areas, whoArea],
})
const proxiedEdge = await startEdge(database.url, {
  env: { ...CLOSED_ENV, PUBLIC_BASE_URL: 'https://mill.example.com' },
})
const ledger = createLedger(database)
await closed.register('admin@example.com')
const user = await closed.register('user@example.com')
const ownerlessJob = await ledger.add(null)
const ownedJob = await ledger.add(user.id)

test('an area that is not open requires a credential', async () => {
  for (const path of ['/api/v1/jobs', '/api/v1/jobs/events', `/api/v1/jobs/${ownerlessJob}`]) {
    assert.equal((await closed.get(path)).status, 401, path)
  }
  assert.equal((await closed.get('/api/v1/jobs', { token: user.token })).status, 200)
})

test('an open area admits anonymous callers and shows them rows without an owner', async () => {
  const list = await openEdge.get('/api/v1/jobs')
  assert.deepEqual(
    [list.status, list.json.map(({ job_id }: { job_id: string }) => job_id)],
    [200, [ownerlessJob]],
  )
  assert.equal((await openEdge.get(`/api/v1/jobs/${ownerlessJob}`)).status, 200)
  assert.equal((await openEdge.get(`/api/v1/jobs/${ownedJob}`)).status, 404)
  assert.equal((await openEdge.call('DELETE', `/api/v1/jobs/${ownedJob}`)).status, 404)
})

test('an open area recognizes a valid credential and rejects an invalid one', async () => {
  assert.equal((await openEdge.get(`/api/v1/jobs/${ownedJob}`, { token: user.token })).status, 200)
  const bad = await openEdge.get('/api/v1/jobs', { token: 'nonsense' })
  assert.deepEqual(
    [bad.status, bad.headers['www-authenticate']],
    [
      401,
      `Bearer realm="Millrace", error="invalid_token", error_description="The access token is invalid, or its session has ended"`,
    ],
  )
})

test('opening one area opens no other', async () => {
  assert.equal((await openEdge.get('/api/v1/documents')).status, 401)
  assert.equal((await openEdge.get('/api/v1/auth/me')).status, 401)
})

test('in production no area is open by default', async () => {
  const env = { NODE_ENV: 'production', DATABASE_URL: database.url }
  const production = await startEdge(database.url, { env })
  assert.equal((await production.get('/api/v1/jobs')).status, 401)
})

test('without authentication every caller is an admin with id 0 whose rows have no owner', async () => {
  const answer = await noAuthEdge.post('/who')
  assert.deepEqual([answer.status, answer.json], [200, { id: 0, ownerId: null, role: 'admin' }])
  const uploaded = await noAuthEdge.upload('', 'a document of nobody')
  assert.equal(uploaded.status, 201)
  const [row] = await database.query('select owner_id from document where id = $1', [uploaded.json.id])
  assert.equal(row!.owner_id, null)
  assert.equal((await noAuthEdge.get('/api/v1/documents')).json.total, 1)
  const shown = (await noAuthEdge.get('/api/v1/jobs')).json.map(({ job_id }: { job_id: string }) => job_id)
  const all = await database.query('select id from job')
  assert.deepEqual(shown.sort(), all.map(({ id }) => id).sort(), 'an admin sees every job')
})

test('without authentication credentials have no effect, valid or not', async () => {
  for (const token of [user.token, 'nonsense'])
    assert.equal((await noAuthEdge.post('/who', { token })).json.id, 0)
})

const closedPort = closed.port
const cancel = async (headers: Record<string, string>, edge = closed, options: CallOptions = {}) => {
  const id = await ledger.add(user.id)
  return (await edge.call('DELETE', `/api/v1/jobs/${id}`, { ...options, headers })).status
}
const cookie = `millrace_session=${user.token}`

test('a page of another site cannot make changes with the cookie', async () => {
  const foreign = [
    'https://evil.example',
    'null',
    `http://127.0.0.1:${closedPort + 1}`,
    `http://127.0.0.1.evil.example:${closedPort}`,
    'garbage',
  ]
  for (const origin of foreign) assert.equal(await cancel({ cookie, origin }), 403, origin)
  assert.equal(await cancel({ cookie, 'sec-fetch-site': 'cross-site' }), 403)
  assert.equal(await cancel({ cookie, origin: 'https://evil.example', 'sec-fetch-site': 'same-origin' }), 403)
})

test('the refusal names its reason, before any other check', async () => {
  const answer = await closed.call('DELETE', `/api/v1/jobs/${ownedJob}`, {
    headers: { cookie, origin: 'https://evil.example' },
  })
  assert.deepEqual(answer.json, {
    detail: 'A page on another site may not make this request',
    code: 'request.cross_site',
  })
  assert.equal((await closed.get(`/api/v1/jobs/${ownedJob}`, { token: user.token })).json.status, 'queued')
})

test('a page of the same origin can make changes with the cookie', async () => {
  for (const headers of [
    { origin: `http://127.0.0.1:${closedPort}` },
    { 'sec-fetch-site': 'same-origin' },
    { 'sec-fetch-site': 'none' },
    {},
  ]) {
    assert.equal(await cancel({ cookie, ...headers }), 202, JSON.stringify(headers))
  }
})

test('the public address and allowed origins count as the same origin', async () => {
  const prefixed = `__Host-${cookie}`
  assert.equal(await cancel({ cookie: prefixed, origin: 'https://mill.example.com' }, proxiedEdge), 202)
  assert.equal(await cancel({ cookie, origin: 'https://app.example.com' }), 202)
  assert.equal(
    await cancel({ cookie, origin: 'https://app.example.com', 'sec-fetch-site': 'cross-site' }),
    202,
  )
  assert.equal(
    await cancel({ cookie: prefixed, origin: 'https://app.example.com' }, proxiedEdge),
    403,
    'only where it is allowed',
  )
})

test('a bearer token needs no origin check, because no page can make a browser send it', async () => {
  const headers = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }
  assert.equal(await cancel(headers, closed, { token: user.token }), 202)
  assert.equal(await cancel({ ...headers, cookie }, closed, { token: user.token }), 202)
})

test('reads with the cookie are allowed from any site, because the answer stays unreadable', async () => {
  const answer = await closed.get('/api/v1/documents', {
    headers: { cookie, origin: 'https://evil.example' },
  })
  assert.equal(answer.status, 200)
  assert.equal(answer.headers['access-control-allow-origin'], undefined)
})

test('uploads, extraction, refresh and logout have the same check', async () => {
  const headers = { cookie: `${cookie}; millrace_refresh=${user.refresh}`, origin: 'https://evil.example' }
  for (const path of ['documents', 'documents/1/extract', 'auth/refresh', 'auth/logout']) {
    const answer = await closed.post(`/api/v1/${path}`, { headers })
    assert.equal(answer.status, 403, path)
    assert.deepEqual(answer.cookies, [])
  }
  const own = { cookie: `millrace_refresh=${user.refresh}`, origin: `http://127.0.0.1:${closedPort}` }
  assert.equal((await closed.post('/api/v1/auth/refresh', { headers: own })).status, 200)
})

test('without authentication /auth/me returns an admin with id 0', async () => {
  const me = await noAuthEdge.get('/api/v1/auth/me')
  assert.equal(me.status, 200)
  assert.deepEqual([me.json.id, me.json.role, me.json.is_active], [0, 'admin', true])
})
