import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findFreePort } from '../free-port.ts'
import { createEmail, startEdge, startEdgeAndDatabase } from './harness.ts'

/** Every kind of answer must have its security headers. */

const metricsPort = await findFreePort()
const { api, url } = await startEdgeAndDatabase({ env: { METRICS_PORT: String(metricsPort) } })
const httpsEdge = await startEdge(url, { env: { PUBLIC_BASE_URL: 'https://mill.example.com' } })
const localhostEdge = await startEdge(url, { env: { PUBLIC_BASE_URL: 'https://localhost' } })
const { token } = await api.register(createEmail())
const { etag } = (await api.get('/docs')).headers

const HOST_HEADER = 'Host: localhost\r\n'
/** Maps each raw request to the expected start of its status line. */
const STATUS_BY_REQUEST: Readonly<Record<string, string>> = {
  [`GET /health HTTP/1.1\r\n${HOST_HEADER}\r\n`]: '200 OK',
  [`HEAD /health HTTP/1.1\r\n${HOST_HEADER}\r\n`]: '200 OK',
  [`GET /docs HTTP/1.1\r\n${HOST_HEADER}\r\n`]: '200 OK',
  [`GET /docs HTTP/1.1\r\n${HOST_HEADER}If-None-Match: ${etag}\r\n\r\n`]: '304 Not Modified',
  [`GET /pages/parts/base.css HTTP/1.1\r\n${HOST_HEADER}\r\n`]: '200 OK',
  [`GET /api/v1/jobs/events HTTP/1.1\r\n${HOST_HEADER}Authorization: Bearer ${token}\r\n\r\n`]: '200 OK',
  [`GET /api/v1/auth/me HTTP/1.1\r\n${HOST_HEADER}\r\n`]: '401 Unauthorized',
  [`GET /nowhere HTTP/1.1\r\n${HOST_HEADER}\r\n`]: '404 Not Found',
  [`OPTIONS /health HTTP/1.1\r\n${HOST_HEADER}\r\n`]: '204 No Content',
  [`POST /health HTTP/1.1\r\n${HOST_HEADER}${HOST_HEADER}\r\n`]: '400 Bad Request',
  [`PUT /health HTTP/1.1\r\n${HOST_HEADER}Content-Length: 1000000\r\n\r\n`]: '405 Method Not Allowed',
}

/** Returns the values of a header in the head of a raw response. */
const headerValuesOf = (answer: string, name: string): string[] =>
  answer
    .split('\r\n\r\n', 1)[0]!
    .split('\r\n')
    .map((line) => line.split(': ', 2) as [string, string])
    .filter(([each]) => each.toLowerCase() === name)
    .map(([, value]) => value)

test('every answer forbids sniffing, has its keep-alive timeout, and does not name its server', async () => {
  for (const [request, status] of Object.entries(STATUS_BY_REQUEST)) {
    const answer = await api.raw(request)
    assert.ok(answer.startsWith(`HTTP/1.1 ${status}\r\n`), answer)
    assert.deepEqual(headerValuesOf(answer, 'x-content-type-options'), ['nosniff'], request)
    assert.deepEqual(headerValuesOf(answer, 'keep-alive'), ['timeout=7'], request)
    for (const name of ['server', 'uwebsockets', 'strict-transport-security'])
      assert.deepEqual(headerValuesOf(answer, name), [], request)
  }
})

test('every answer of a service with an https address has HSTS, except on localhost', async () => {
  for (const request of Object.keys(STATUS_BY_REQUEST)) {
    const answer = await httpsEdge.raw(request)
    assert.deepEqual(headerValuesOf(answer, 'strict-transport-security'), ['max-age=31536000'], request)
  }
  assert.equal((await localhostEdge.get('/health')).headers['strict-transport-security'], undefined)
})

test('answers of the metrics port have HSTS, too', async () => {
  for (const path of ['/metrics', '/']) {
    const { headers } = await fetch(`http://127.0.0.1:${metricsPort}${path}`)
    assert.equal(headers.get('x-content-type-options'), 'nosniff')
    assert.equal(headers.get('uwebsockets'), null)
  }
})

test('JSON opened as a page cannot load or be framed', async () => {
  const policy = "default-src 'none'; frame-ancestors 'none'"
  for (const path of ['/health', '/nowhere', '/openapi.json', '/api/v1/auth/me'])
    assert.equal((await api.get(path)).headers['content-security-policy'], policy, path)
  const large = await api.get('/api/v1/llm/models', { token, headers: { 'accept-encoding': 'gzip' } })
  assert.equal(large.headers['content-security-policy'], policy)
})

test('pages are isolated from other windows and send no referrer', async () => {
  for (const path of ['/', '/docs', '/monitor', '/setup', '/password-reset', '/payment/success']) {
    const { headers } = await api.get(path)
    assert.equal(headers['cross-origin-opener-policy'], 'same-origin', path)
    assert.equal(headers['referrer-policy'], 'no-referrer', path)
  }
})
