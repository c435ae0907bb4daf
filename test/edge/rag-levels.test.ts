import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createEmail, getSharedEdge, startEdge } from './harness.ts'

/** Tests indexing, search and deletion at each level of authentication, with the area closed and open. */

const closedEnv = { OPEN_AREAS: 'jobs', REQUEST_WAIT_SECONDS: '0' }
const shared = await getSharedEdge()
const { url } = shared
const rbacEdge = await startEdge(url, { env: { AUTH_LEVEL: 'rbac', ...closedEnv } })
const basicEdge = await startEdge(url, { env: { AUTH_LEVEL: 'basic', ...closedEnv } })
const noAuthEdge = await startEdge(url, { env: { AUTH_LEVEL: 'none', REQUEST_WAIT_SECONDS: '0' } })
const openEdge = await startEdge(url, { env: { REQUEST_WAIT_SECONDS: '0' } })
const user = await shared.api.register(createEmail())
const { admin } = shared

const READ_REQUESTS = [
  ['POST', '/rag/search', { query: 'q', collection_name: 'none' }, 404],
  ['GET', '/rag/collections', undefined, 200],
  ['GET', '/rag/collections/none', undefined, 404],
  ['GET', '/rag/collections/none/files', undefined, 404],
  // 404, because permission to delete a collection depends on its content.
  ['DELETE', '/rag/collections/none', undefined, 404],
  ['GET', '/rag/health', undefined, 200],
] as const
const WRITE_REQUESTS = [['POST', '/rag/index', { path: '.', collection_name: 'x' }, 202]] as const

for (const [name, api, who, reads, writes] of [
  ['rbac, nobody', rbacEdge, null, 401, 401],
  ['rbac, a user', rbacEdge, user, null, 403],
  ['rbac, an admin', rbacEdge, admin, null, null],
  ['basic, nobody', basicEdge, null, 401, 401],
  ['basic, a user', basicEdge, user, null, null],
  ['none', noAuthEdge, null, null, null],
  ['open, nobody', openEdge, null, null, null],
  ['open, a user', openEdge, user, null, null],
] as const) {
  describe(name, () => {
    for (const [routes, refused] of [
      [READ_REQUESTS, reads],
      [WRITE_REQUESTS, writes],
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
