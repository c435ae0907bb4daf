import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { runPurge } from '../purge.ts'
import { createCast } from './accounts-help.ts'
import { startEdge, startEdgeAndDatabase } from './harness.ts'

/** Tests access to the catalog and the current model at each level, with the area open and closed. */

const {
  api: rbac,
  url,
  query,
  db,
} = await startEdgeAndDatabase({ env: { AUTH_LEVEL: 'rbac', OPEN_AREAS: 'ai' } })
const { admin, moderator, user } = await createCast(rbac)
const tokensByCaller = {
  nobody: undefined,
  user: user.token,
  moderator: moderator.token,
  admin: admin.token,
  'bad token': 'nonsense',
}

const readPaths = [
  '/status',
  '/vendors',
  '/modalities',
  '/models',
  '/current',
  '/prices?vendor=openai&model_id=gpt-4.1',
]
const writeRequests: readonly [string, string, object | undefined][] = [
  ['POST', '/current', { model: 'gpt-4.1' }],
  ['DELETE', '/current', undefined],
  ['POST', '/sync?background=true', undefined],
]

const OPEN_STATUSES = { nobody: 200, user: 200, moderator: 200, admin: 200, 'bad token': 401 }
const CLOSED_STATUSES = { ...OPEN_STATUSES, nobody: 401 }
const ADMIN_STATUSES = { nobody: 401, user: 403, moderator: 403, admin: 200, 'bad token': 401 }
const NO_AUTH_STATUSES = { ...OPEN_STATUSES, 'bad token': 200 }
const levels: readonly [string, string, string, object, object][] = [
  ['rbac', 'rbac', 'ai', CLOSED_STATUSES, ADMIN_STATUSES],
  ['rbac, open', 'rbac', 'llm', OPEN_STATUSES, ADMIN_STATUSES],
  ['basic', 'basic', 'ai', CLOSED_STATUSES, ADMIN_STATUSES],
  ['basic, open', 'basic', 'llm', OPEN_STATUSES, ADMIN_STATUSES],
  ['none', 'none', 'ai', NO_AUTH_STATUSES, NO_AUTH_STATUSES],
  ['none, open', 'none', 'llm', NO_AUTH_STATUSES, NO_AUTH_STATUSES],
]

for (const [name, AUTH_LEVEL, OPEN_AREAS, read, write] of levels)
  describe(name, async () => {
    const api = await startEdge(url, { env: { AUTH_LEVEL, OPEN_AREAS } })
    const statuses = async (method: string, path: string, json?: object) => {
      const found: Record<string, number> = {}
      for (const [who, token] of Object.entries(tokensByCaller)) {
        const options = { ...(token === undefined ? {} : { token }), ...(json === undefined ? {} : { json }) }
        const answer = await api.call(method, `/llm${path}`, options)
        if (answer.status === 403)
          assert.deepEqual(answer.json, { detail: 'This requires the role admin', code: 'auth.forbidden' })
        // A new job counts as success.
        found[who] = answer.status === 202 ? 200 : answer.status
      }
      return found
    }
    for (const path of readPaths) test(path, async () => assert.deepEqual(await statuses('GET', path), read))
    for (const [method, path, json] of writeRequests)
      test(`${method} ${path}`, async () => assert.deepEqual(await statuses(method, path, json), write))
  })

test('the current model shows who chose it until that account is deleted', async () => {
  const { newcomer } = { newcomer: await rbac.register('second@example.com') }
  await rbac.call('PATCH', `/api/v1/auth/users/${newcomer.id}/role?role=admin`, { token: admin.token })
  assert.equal(
    (await rbac.post('/llm/current', { token: newcomer.token, json: { model: 'gpt-4.1' } })).status,
    200,
  )
  const by = async () => (await query('select chosen_by from llm_current'))[0]!.chosen_by
  assert.equal(await by(), newcomer.id)
  assert.ok(
    (await rbac.call('DELETE', `/api/v1/auth/users/${newcomer.id}`, { token: admin.token })).status < 300,
  )
  await runPurge(db)
  assert.equal(await by(), null)
})

test('routes have no prefix /api/v1', async () => {
  assert.equal((await rbac.get('/api/v1/llm/status')).status, 404)
})
