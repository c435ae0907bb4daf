import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { newEmail, sharedEdge, startEdge } from './harness.ts'

/** Tests indexing, search and deletion at each level of authentication, with the area closed and open. */

const closed = { OPEN_AREAS: 'jobs', REQUEST_WAIT_SECONDS: '0' }
const shared = await sharedEdge()
const { url } = shared
const rbac = await startEdge(url, { env: { AUTH_LEVEL: 'rbac', ...closed } })
const basic = await startEdge(url, { env: { AUTH_LEVEL: 'basic', ...closed } })
const none = await startEdge(url, { env: { AUTH_LEVEL: 'none', REQUEST_WAIT_SECONDS: '0' } })
const open = await startEdge(url, { env: { REQUEST_WAIT_SECONDS: '0' } })
const user = await shared.api.register(newEmail())
const { admin } = shared

const ASKS = [
  ['POST', '/rag/search', { query: 'q', collection_name: 'none' }, 404],
  ['GET', '/rag/collections', undefined, 200],
  ['GET', '/rag/collections/none', undefined, 404],
  ['GET', '/rag/collections/none/files', undefined, 404],
  // 404, because permission to delete a collection depends on its content.
  ['DELETE', '/rag/collections/none', undefined, 404],
  ['GET', '/rag/health', undefined, 200],
] as const
const WRITES = [['POST', '/rag/index', { path: '.', collection_name: 'x' }, 202]] as const

for (const [name, api, who, reads, writes] of [
  ['rbac, nobody', rbac, null, 401, 401],
  ['rbac, a user', rbac, user, null, 403],
  ['rbac, an admin', rbac, admin, null, null],
  ['basic, nobody', basic, null, 401, 401],
  ['basic, a user', basic, user, null, null],
  ['none', none, null, null, null],
  ['open, nobody', open, null, null, null],
  ['open, a user', open, user, null, null],
] as const) {
  describe(name, () => {
    for (const [routes, refused] of [
      [ASKS, reads],
      [WRITES, writes],
    ] as const) {
      for (const [method, path, json, status] of routes) {
        test(`${method} ${path}: ${refused ?? status}`, async () => {
          const options = { ...(who ? { token: who.token } : {}), ...(json === undefined ? {} : { json }) }
          const answer = await api.call(method, path, options)
          assert.equal(answer.status, refused ?? status, answer.text)
          if (refused === 401) assert.equal(answer.headers['www-authenticate'], 'Bearer realm="Millrace"')
        })
      }
    }
  })
}
