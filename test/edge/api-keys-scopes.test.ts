import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { listAdmittingScopes, listScopes } from '../../edge/pipeline/access/scopes.ts'
import type { AnyRoute, Area } from '../../edge/pipeline/route.ts'
import { areas } from '../../edge/routes/index.ts'
import { createCast } from './accounts-help.ts'
import { createKey } from './api-keys-help.ts'
import { startEdgeAndDatabase } from './harness.ts'
import { operationOf } from './matrix-ask.ts'

/** Tests the scopes of API keys on every declared operation. All keys belong to an admin, so only the scope decides. */

const ROUTES_FOLDER = fileURLToPath(new URL('../../edge/routes', import.meta.url))
const { api } = await startEdgeAndDatabase()
const { admin } = await createCast(api)
const keys = new Map<string, string>()
for (const scope of listScopes()) keys.set(scope, (await createKey(api, admin, { scopes: [scope] })).key)

const operations = areas.flatMap((area) => area.routes.map((route) => ({ area, route })))
const guardedOperations = operations.filter(({ area, route }) => (route.auth ?? area.auth) !== 'public')

/** Scopes that operations additionally need in another area. */
const EXTRA_SCOPES: Readonly<Record<string, string>> = { 'POST /voice/transcriptions': 'documents:read' }

/** Returns the detail of a 403 that precedes input validation, or null if the operation admits the scope. */
async function findRefusal(area: Area, route: AnyRoute, scope: string): Promise<string | null> {
  const [method, pattern] = operationOf(area, route).split(' ') as [string, string]
  const path = pattern.replace(/:\w+/g, '999999999')
  const abort = new AbortController()
  const response = await fetch(`http://127.0.0.1:${api.port}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${keys.get(scope)}`,
      'content-type': 'application/json',
      prefer: 'respond-async',
    },
    ...(method === 'GET' ? {} : { body: '{"nothing":"of that"}' }),
    signal: abort.signal,
  })
  // Abort streams, which do not end by themselves. Other connections stay open for the next request.
  if (response.headers.get('content-type')?.startsWith('text/event-stream')) abort.abort()
  const text = abort.signal.aborted ? '' : await response.text()
  return response.status === 403 ? (JSON.parse(text) as { detail: string }).detail : null
}

const guardedAreas = [...new Set(guardedOperations.map(({ area }) => area.name))].sort()

test('the scopes are exactly the areas that require a credential, and those that routes name', () => {
  const scopes = ['*', ...guardedAreas].flatMap((area) => [`${area}:read`, `${area}:write`])
  assert.deepEqual(listScopes(), [...scopes, 'worker-queues:work'])
})

test('handlers require scopes of declared areas only', () => {
  const files = readdirSync(ROUTES_FOLDER, { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.ts'),
  )
  const unknown: string[] = []
  let all = 0
  for (const file of files)
    for (const [n, line] of readFileSync(`${ROUTES_FOLDER}/${file}`, 'utf8').split('\n').entries())
      for (const [, name] of line.matchAll(/requireScope\(\w+, '(\w+)'/g)) {
        all++
        if (!guardedAreas.includes(name!))
          unknown.push(
            `edge/routes/${file}:${n + 1}: no area '${name}' in edge/routes/index.ts needs a credential`,
          )
      }
  assert.ok(all >= 5)
  assert.deepEqual(unknown, [])
})

describe('each operation accepts its own scope and scopes that include it, and no other', () => {
  for (const { area, route } of guardedOperations.filter(({ route }) => route.needsSession !== true))
    test(operationOf(area, route), async () => {
      const name = operationOf(area, route)
      const admitting = listAdmittingScopes(area, route)
      const others = ['read', 'write'].flatMap((verb) => [
        `${area.name}:${verb}`,
        `*:${verb}`,
        `tasks:${verb}`,
      ])
      for (const scope of new Set([...others, 'jobs:read'])) {
        const refusal = await findRefusal(area, route, scope)
        const isIn = admitting.includes(scope) && (scope.startsWith('*') || EXTRA_SCOPES[name] === undefined)
        const needed = admitting.includes(scope) ? EXTRA_SCOPES[name] : admitting[0]
        assert.equal(refusal, isIn ? null : `The API key lacks the scope ${needed}`, scope)
      }
    })
})

test('the challenge names a missing scope (RFC 6750, section 3.1)', async () => {
  const answer = await api.get('/api/v1/documents', { token: keys.get('jobs:read')! })
  assert.deepEqual([answer.status, answer.json.code], [403, 'auth.scope'])
  assert.equal(
    answer.headers['www-authenticate'],
    'Bearer realm="Millrace", error="insufficient_scope", ' +
      'error_description="The API key lacks the scope documents:read", scope="documents:read"',
  )
  const elsewhere = await api.post('/api/v1/webhooks', {
    token: keys.get('webhooks:write')!,
    json: { url: 'https://example.com/hook', events: ['job.done'] },
  })
  assert.match(elsewhere.headers['www-authenticate']!, /scope="jobs:read"$/)
})

test('read scopes admit only operations without side effects or cost', () => {
  const reading = guardedOperations.filter(({ area, route }) => listAdmittingScopes(area, route).length === 4)
  assert.deepEqual(
    reading.filter(({ route }) => route.method !== 'get').map(({ area, route }) => operationOf(area, route)),
    ['POST /api/v1/comms/templates/:name/preview', 'POST /rag/search'],
  )
  const writing = guardedOperations.filter(({ area, route }) => listAdmittingScopes(area, route).length === 2)
  assert.deepEqual(
    writing.filter(({ route }) => route.method === 'get').map(({ area, route }) => operationOf(area, route)),
    ['GET /api/v1/ai/chat/stream', 'GET /voice/preview/:voice_id'],
  )
})

test('sign-in operations accept no key', async () => {
  const needing = operations.filter(({ route }) => route.needsSession === true)
  assert.deepEqual(needing.map(({ area, route }) => operationOf(area, route)).sort(), [
    'DELETE /api/v1/auth/keys/:key_id',
    'DELETE /api/v1/auth/me',
    'DELETE /api/v1/auth/me/email',
    'DELETE /api/v1/auth/me/identities/:identity_id',
    'DELETE /api/v1/auth/passkeys/:passkey_id',
    'DELETE /api/v1/auth/sessions',
    'DELETE /api/v1/auth/sessions/:session_id',
    'DELETE /api/v1/auth/totp',
    'DELETE /api/v1/auth/users/:user_id/totp',
    'GET /api/v1/auth/keys',
    'GET /api/v1/auth/me/email',
    'GET /api/v1/auth/me/export',
    'GET /api/v1/auth/me/export/:id',
    'GET /api/v1/auth/me/identities',
    'GET /api/v1/auth/passkeys',
    'GET /api/v1/auth/sessions',
    'GET /api/v1/auth/totp',
    'PATCH /api/v1/auth/keys/:key_id',
    'PATCH /api/v1/auth/passkeys/:passkey_id',
    'POST /api/v1/auth/change-password',
    'POST /api/v1/auth/keys',
    'POST /api/v1/auth/logout',
    'POST /api/v1/auth/me/email',
    'POST /api/v1/auth/me/export',
    'POST /api/v1/auth/me/restore',
    'POST /api/v1/auth/passkeys',
    'POST /api/v1/auth/passkeys/options',
    'POST /api/v1/auth/totp',
    'POST /api/v1/auth/totp/confirm',
    'POST /api/v1/auth/totp/recovery-codes',
    'POST /api/v1/auth/users/import',
  ])
  for (const { area, route } of needing.filter(({ area, route }) => (route.auth ?? area.auth) !== 'public'))
    assert.equal(await findRefusal(area, route, '*:write'), 'API keys may not do this; sign in instead')
})

test('a public operation treats a key like any caller', async () => {
  const logout = (scope: string) => api.post('/api/v1/auth/logout', { token: keys.get(scope)! })
  assert.equal((await logout('*:write')).status, 401)
  assert.equal((await api.get('/api/v1/blog/posts', { token: keys.get('jobs:read')! })).status, 200)
  const register = { email: 'somebody@example.com', password: 'correct horse' }
  assert.equal(
    (await api.post('/api/v1/auth/register', { token: keys.get('jobs:read')!, json: register })).status,
    200,
  )
})
