import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createEmail, getSharedEdge } from './harness.ts'

/** A page of another site must not make its visitors spend money through a GET, such as an image or a link. */

const { api } = await getSharedEdge()
const { token } = await api.register(createEmail())
const PATHS = ['/voice/preview/alloy', '/api/v1/ai/chat/stream?message=hello']
const foreignHeaders = [
  { origin: 'https://evil.example' },
  { origin: 'null' },
  { 'sec-fetch-site': 'cross-site' },
  // Another origin of the same site counts as foreign.
  { 'sec-fetch-site': 'same-site' },
  { 'sec-fetch-site': 'cross-site', cookie: `millrace_session=${token}` },
]
const ownHeaders = [
  {},
  { origin: `http://127.0.0.1:${api.port}` },
  { 'sec-fetch-site': 'same-origin' },
  { 'sec-fetch-site': 'none', cookie: `millrace_session=${token}` },
  { 'sec-fetch-site': 'cross-site', authorization: `Bearer ${token}` },
  { origin: 'https://evil.example', authorization: `Bearer ${token}` },
]

for (const path of PATHS) {
  test(`GET ${path} is rejected from another site, with and without a cookie`, async () => {
    for (const headers of foreignHeaders) {
      const { status, json } = await api.get(path, { headers })
      assert.deepEqual(
        [status, json],
        [403, { detail: 'A page on another site may not make this request', code: 'request.cross_site' }],
        JSON.stringify(headers),
      )
    }
  })

  test(`GET ${path} is accepted from the same origin, from programs, and with a bearer token`, async () => {
    // 503 shows that the request passed the origin check, because no provider key is configured.
    for (const headers of ownHeaders)
      assert.equal((await api.get(path, { headers })).status, 503, JSON.stringify(headers))
  })
}

test('a GET without cost is accepted from any page', async () => {
  const headers = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }
  assert.equal((await api.get('/voice/catalog/summary', { headers })).status, 200)
})
