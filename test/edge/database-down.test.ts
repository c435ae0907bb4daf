import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../database.ts'
import { until } from '../until.ts'
import { createCuttableConnection, startEdge } from './harness.ts'

/** Tests a running edge while the database goes down and comes back. */

const { url, query } = await createTestDatabase()
const databaseLine = await createCuttableConnection(url)
const api = await startEdge(databaseLine.url)
const { token } = await api.register('owner@example.com')
const otherAccount = await api.register('stranger@example.com')

// One path for each way to reach the database: pipelined reads, the pool, a transaction.
const paths = [
  ['GET', '/api/v1/documents', 200],
  ['GET', '/api/v1/documents/1/content', 404],
  ['POST', '/api/v1/documents/1/extract', 404],
] as const

test('requests are 503 soon after PostgreSQL goes down, without its error text', async () => {
  await databaseLine.cut()
  for (const [method, path] of paths) {
    const startedAt = performance.now()
    const answer = await api.call(method, path, { token })
    assert.equal(answer.status, 503, `${method} ${path}: ${answer.text}`)
    assert.deepEqual(answer.json, {
      detail: 'The database cannot be reached; try again shortly',
      code: 'database.down',
    })
    assert.equal(answer.headers['retry-after'], '1')
    assert.ok(answer.headers['x-request-id'])
    assert.ok(performance.now() - startedAt < 20_000)
  }
})

test('a credential that cannot be checked is 503, not 401', async () => {
  const json = { email: 'later@example.com', password: 'correct horse' }
  assert.equal((await api.post('/api/v1/auth/register', { json })).status, 503)
  api.serving.edge.authenticator.forget(otherAccount.id)
  const answer = await api.get('/api/v1/auth/me', { token: otherAccount.token })
  assert.equal(answer.status, 503)
  assert.equal(answer.headers['www-authenticate'], undefined)
})

test('the process is healthy but not ready, for every caller', async () => {
  assert.equal((await api.get('/health')).status, 200)
  api.serving.edge.authenticator.forget(null)
  assert.equal((await api.get('/health', { token: otherAccount.token })).status, 200)
  const cookie = `millrace_session=${otherAccount.token}`
  assert.equal((await api.get('/openapi.json', { headers: { cookie } })).status, 200)
  assert.equal(
    (await api.post('/api/v1/auth/logout', { headers: { cookie } })).status,
    503,
    'no 401 by mistake',
  )
  const ready = await api.get('/ready')
  assert.deepEqual(
    [ready.status, ready.json],
    [
      503,
      {
        ...{ status: 'unavailable', database: false, migrated: false, admin: null },
        ...{ writable: false, clock_offset_seconds: 0 },
      },
    ],
  )
})

test('metrics are still available', async () => {
  const answer = await api.get('/metrics')
  assert.equal(answer.status, 200)
  assert.match(answer.text, /http_requests_total\{[^}]*status="5xx"[^}]*\} [1-9]/)
})

test('the service recovers with PostgreSQL and listens again', async (t) => {
  await databaseLine.restore()
  await until(
    'the service answers',
    async () => (await api.get('/api/v1/auth/me', { token: otherAccount.token })).status === 200,
  )
  for (const [method, path, status] of paths) {
    await until(`${path} works`, async () => (await api.call(method, path, { token })).status === status)
  }
  assert.equal((await api.get('/ready')).status, 200)
  // Stop the clock: otherwise the cached account would expire without a notification.
  const now = performance.now()
  t.mock.method(performance, 'now', () => now)
  assert.equal((await api.get('/api/v1/auth/me', { token: otherAccount.token })).status, 200)
  await query('update account set is_active = false where id = $1', [otherAccount.id])
  await until('the edge hears notifications again', async () => {
    await query(`select pg_notify('account_changed', $1)`, [String(otherAccount.id)])
    return (await api.get('/api/v1/auth/me', { token: otherAccount.token })).status === 401
  })
})
