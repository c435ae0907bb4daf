import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ensureAdmin } from '../../edge/admin.ts'
import { edgeAndDatabase, PASSWORD } from './harness.ts'

const ADMIN = { ADMIN_EMAIL: 'root@example.com', ADMIN_PASSWORD: 'the admin of the settings' }
const { api, query } = await edgeAndDatabase({ env: ADMIN })
const { edge } = api.serving
const login = (password: string) =>
  api.post('/api/v1/auth/token', { form: { username: 'root@example.com', password } })
const trail = () => query(`select kind, data ->> 'by' as by from audit_event where data ? 'by' order by id`)

test('the admin of the settings is made once, and its making is in the trail', async () => {
  await Promise.all([ensureAdmin(edge), ensureAdmin(edge), ensureAdmin(edge)])
  const { json, status } = await login(ADMIN.ADMIN_PASSWORD)
  assert.equal(status, 200)
  const me = await api.get('/api/v1/auth/me', { token: json.access_token })
  assert.deepEqual([me.json.role, me.json.is_verified], ['admin', true])
  assert.deepEqual(await trail(), [{ kind: 'account.registered', by: 'ADMIN_EMAIL' }])
})

test('an account that is there already is made admin and active again, and keeps its password', async () => {
  const other = await api.register('other@example.com')
  await query(`update account set role = 'admin' where id = $1`, [other.id])
  await query(`update account set role = 'user', is_active = false where email = 'root@example.com'`)
  await ensureAdmin({ ...edge, settings: { ...edge.settings, adminPassword: PASSWORD } })
  assert.equal((await login(PASSWORD)).status, 401)
  assert.equal((await login(ADMIN.ADMIN_PASSWORD)).status, 200)
  assert.deepEqual((await trail()).at(-1), { kind: 'account.role_changed', by: 'ADMIN_EMAIL' })
})
