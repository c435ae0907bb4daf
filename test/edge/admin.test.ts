import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import net from 'node:net'
import { test } from 'node:test'
import { insertMailedToken } from '../../sql/accounts/accounts.ts'
import { noRows, sql } from '../../sql/db.ts'
import { digestOf } from '../../tasks/accounts/tokens.ts'
import { createLog } from '../../tasks/platform/log.ts'
import { createTestDatabase } from '../database.ts'
import { findFreePort } from '../free-port.ts'
import { mailedTokenOf } from '../keys.ts'
import { startProcess } from '../service.ts'
import { until } from '../until.ts'
import { type Api, PASSWORD, startEdge, startEdgeAndDatabase } from './harness.ts'

const EMAIL = 'root@example.com'
const ADMIN = { ADMIN_EMAIL: EMAIL, ADMIN_PASSWORD: 'the admin of the settings' }
const logIn = (api: Api, password: string) =>
  api.post('/api/v1/auth/token', { form: { username: EMAIL, password } })
type Query = Awaited<ReturnType<typeof createTestDatabase>>['query']
const readAuditEvents = (query: Query) =>
  query(`select kind from audit_event where data ->> 'by' = 'ADMIN_EMAIL' order by id`).then((rows) =>
    rows.map(({ kind }) => kind),
  )

/** Starts an edge with `ADMIN_EMAIL`; returns it with its startup log. */
async function startWithAdmin(url: string): Promise<{ api: Api; said: string[] }> {
  const said: string[] = []
  const log = await createLog('info', 'edge')
  for (const level of ['info', 'warn'] as const)
    log[level] = ((_: unknown, message?: string) => said.push(message ?? String(_))) as never
  return { api: await startEdge(url, { env: ADMIN, log }), said }
}

test('edges that start concurrently create the configured admin once, and it can sign in immediately', async () => {
  const { url, query } = await createTestDatabase()
  const edges = await Promise.all([startWithAdmin(url), startWithAdmin(url), startWithAdmin(url)])
  for (const { api } of edges) {
    const { json, status } = await logIn(api, ADMIN.ADMIN_PASSWORD)
    assert.equal(status, 200)
    const me = await api.get('/api/v1/auth/me', { token: json.access_token })
    assert.deepEqual([me.json.role, me.json.is_verified], ['admin', true])
  }
  assert.deepEqual(await readAuditEvents(query), ['account.registered'])
  const said = edges.flatMap((edge) => edge.said.filter((line) => line.includes('ADMIN_EMAIL'))).sort()
  assert.match(said.shift()!, /Created the account/)
  assert.match(said.shift()!, /is already an admin/)
  assert.match(said.shift()!, /is already an admin/)
})

test('the port is closed until the admin exists', async () => {
  const { url, db, query } = await createTestDatabase()
  const port = await findFreePort()
  const starting = await db.transaction(async (tx) => {
    await tx.run(sql.type(noRows)`lock table account in access exclusive mode`)
    const child = startProcess('edge', url, { ...ADMIN, PORT: String(port) })
    await until('the start waits for the account lock', async () => {
      const waiting = await query(`select from pg_locks where not granted and relation = 'account'::regclass`)
      return waiting.length > 0
    })
    assert.equal(await acceptsConnections(port), false)
    return { child }
  })
  await starting.child
  assert.equal(await acceptsConnections(port), true)
})

test('a verified account becomes an active admin again and keeps its password', async () => {
  const { api, url, query } = await startEdgeAndDatabase()
  await api.register('other@example.com')
  const account = await api.register(EMAIL)
  await query(`update account set is_verified = true, is_active = false where id = $1`, [account.id])
  const { api: again, said } = await startWithAdmin(url)
  assert.equal((await logIn(again, ADMIN.ADMIN_PASSWORD)).status, 401)
  const { status, json } = await logIn(again, PASSWORD)
  assert.equal(status, 200)
  assert.equal((await again.get('/api/v1/auth/users', { token: json.access_token })).status, 200)
  assert.deepEqual(await readAuditEvents(query), ['account.role_changed'])
  const [changed] = await query(`select data from audit_event where kind = 'account.role_changed'`)
  assert.deepEqual(changed!.data, { by: 'ADMIN_EMAIL', from: 'user', to: 'admin' })
  assert.ok(said.some((line) => /Made the account of ADMIN_EMAIL an active admin/.test(line)))
})

test('an unverified account gets the configured password and loses its earlier sessions', async () => {
  const { api, url, db, query } = await startEdgeAndDatabase()
  const other = await api.register('other@example.com')
  const squatter = await api.register(EMAIL)
  const mailed = (['reset', 'verify'] as const).map((kind) => ({ kind, id: randomUUID() }))
  for (const { kind, id } of mailed)
    await db.one(insertMailedToken(id, squatter.id, kind, digestOf(mailedTokenOf(kind, id)), 3600))
  assert.equal((await api.get('/api/v1/auth/me', { token: squatter.token })).status, 200)

  const edges = await Promise.all([startWithAdmin(url), startWithAdmin(url), startWithAdmin(url)])

  await until('the running edge sees the change', async () => {
    const { status } = await api.get('/api/v1/auth/me', { token: squatter.token })
    return status === 401
  })
  for (const edge of [api, ...edges.map((one) => one.api)]) {
    assert.equal((await edge.get('/api/v1/auth/me', { token: squatter.token })).status, 401)
    const cookie = `millrace_refresh=${squatter.refresh}`
    assert.equal((await edge.post('/api/v1/auth/refresh', { headers: { cookie } })).status, 401)
    assert.equal((await logIn(edge, PASSWORD)).status, 401)
  }
  const [reset, verify] = mailed.map(({ kind, id }) => mailedTokenOf(kind, id))
  const confirm = { token: reset, new_password: PASSWORD }
  assert.equal((await api.post('/api/v1/auth/password-reset/confirm', { json: confirm })).status, 400)
  assert.equal((await api.post('/api/v1/auth/verify-email', { json: { token: verify } })).status, 400)

  const { json } = await logIn(api, ADMIN.ADMIN_PASSWORD)
  const me = await api.get('/api/v1/auth/me', { token: json.access_token })
  assert.deepEqual([me.json.id, me.json.role, me.json.is_verified], [squatter.id, 'admin', true])
  assert.equal((await api.get('/api/v1/auth/me', { token: other.token })).status, 200)
  assert.deepEqual(await readAuditEvents(query), [
    'account.role_changed',
    'account.password_reset',
    'account.verified',
  ])
  const told = edges.flatMap(({ said }) => said.filter((line) => /ADMIN_EMAIL was unverified/.test(line)))
  assert.equal(told.length, 1)
})

function acceptsConnections(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}
