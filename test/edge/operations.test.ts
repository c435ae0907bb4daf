import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { blockThread, until } from '../until.ts'
import { startEdgeAndDatabase } from './harness.ts'
import { createLedger } from './ledger.ts'

const { api, ...database } = await startEdgeAndDatabase()
const ledger = createLedger(database)
const { token, id } = await api.register('owner@example.com')

test('/health is constant and needs no credential', async () => {
  const answer = await api.get('/health')
  assert.deepEqual([answer.status, answer.text], [200, '{"status":"ok"}'])
})

/**
 * Waits for a `/ready` report that has the given status and shows no clock offset. A process that was stalled for a
 * second measures a wrong offset until the next check.
 */
const waitForReadiness = (status: number) =>
  until(`/ready is ${status}`, async () => {
    const answer = await api.get('/ready')
    return answer.status === status && answer.json.clock_offset_seconds === 0 && answer.json
  })

test('/ready reports that the database is available and migrated', async () => {
  const ready = {
    status: 'ready',
    database: true,
    migrated: true,
    admin: 'present',
    writable: true,
    clock_offset_seconds: 0,
  }
  assert.deepEqual(await waitForReadiness(200), ready)
})

test('/ready is 503 without migrations, recorded or not', async () => {
  const unready = {
    status: 'unavailable',
    database: true,
    migrated: false,
    admin: 'present',
    writable: true,
    clock_offset_seconds: 0,
  }
  const rows = await database.query('delete from migration returning name, applied_at')
  try {
    assert.deepEqual(await waitForReadiness(503), unready)
    await database.query('alter table migration rename to elsewhere')
    assert.deepEqual(await waitForReadiness(503), { ...unready, admin: null })
    await database.query('alter table elsewhere rename to migration')
  } finally {
    for (const row of rows)
      await database.query('insert into migration values ($1, $2)', [row.name, row.applied_at])
  }
  assert.equal((await api.get('/ready')).status, 200)
})

test('/ready accepts a database answer that arrived while the process was stalled', async (t) => {
  const { reader } = api.serving.edge
  const text = reader.text.bind(reader)
  t.mock.method(reader, 'text', (...asked: Parameters<typeof text>) => {
    const answer = text(...asked)
    // Stall the process after the query is sent.
    setImmediate(blockThread, 2_100)
    return answer
  })
  assert.equal((await api.get('/ready')).status, 200)
})

/** Waits until `/metrics` contains a part and returns the text, which may be a second old. */
async function waitForMetric(part: string | RegExp): Promise<string> {
  let text = ''
  const holds = async (): Promise<boolean> => {
    text = (await api.get('/metrics')).text
    return typeof part === 'string' ? text.includes(part) : part.test(text)
  }
  await until(`${part} in the metrics`, holds)
  return text
}

test('/metrics counts requests by operation and status class', async () => {
  await api.get('/api/v1/documents/1', { token })
  await api.get('/api/v1/documents/2', { token })
  await api.get('/no/such/path')
  const { status, headers } = await api.get('/metrics')
  assert.equal(status, 200)
  const text = await waitForMetric('documents/:id",status="4xx"} 2')
  assert.match(headers['content-type'] as string, /^text\/plain; version=0\.0\.4/)
  const series = (labels: string) =>
    new RegExp(`^http_requests_total\\{${labels}\\} (\\d+)$`, 'm').exec(text)?.[1]
  assert.equal(series('method="GET",route="/api/v1/documents/:id",status="4xx"'), '2')
  assert.equal(series('method="POST",route="/api/v1/auth/register",status="2xx"'), '1')
  assert.equal(series('method="GET",route="none",status="4xx"'), '1')
  assert.doesNotMatch(text, /documents\/1"/, 'no series per row')
})

test('/metrics shows jobs by queue and state, streams, watchers and connections', async () => {
  await ledger.add(id)
  await ledger.claim(await ledger.add(id))
  await ledger.addFinished(id)
  const text = await waitForMetric('status="running"} 1')
  assert.match(text, /^jobs\{queue="documents",status="queued"\} 1$/m)
  assert.match(text, /^jobs\{queue="documents",status="running"\} 1$/m)
  assert.match(text, /^job_queue_oldest_seconds\{queue="documents"\} \d+(\.\d+)?$/m)
  for (const name of ['sse_clients', 'job_watchers', 'db_pool_active', 'db_pool_idle', 'db_pool_waiting']) {
    assert.match(text, new RegExp(`^# TYPE ${name} gauge\n${name} \\d+$`, 'm'), name)
  }
  for (const name of [
    'process_cpu_seconds_total',
    'process_resident_memory_bytes',
    'nodejs_eventloop_lag_seconds',
  ]) {
    assert.match(text, new RegExp(`^${name} `, 'm'), name)
  }
})

test('the metric of open streams rises and falls', async () => {
  const leave = new AbortController()
  const reading = fetch(`http://127.0.0.1:${api.port}/api/v1/jobs/events`, {
    headers: { authorization: `Bearer ${token}` },
    signal: leave.signal,
  })
  assert.equal((await reading).status, 200)
  await waitForMetric(/^sse_clients 1$/m)
  leave.abort()
  await waitForMetric(/^sse_clients 0$/m)
})

test('clients cannot add series: unknown methods count as one', async () => {
  for (const method of ['AAA', 'BBB', 'CCC'])
    await api.raw(`${method} /health HTTP/1.1\r\nHost: localhost\r\n\r\n`, 20)
  const text = await waitForMetric('method="other",route="none",status="4xx"} 3')
  assert.doesNotMatch(text, /AAA|BBB|CCC/)
})

test('/docs runs scripts of its own origin only', async () => {
  const { status, headers, text } = await api.get('/docs')
  assert.equal(status, 200)
  assert.equal(headers['content-type'], 'text/html; charset=utf-8')
  const policy = new Map(
    (headers['content-security-policy'] as string).split('; ').map((part) => [part.split(' ')[0], part]),
  )
  assert.equal(policy.get('default-src'), "default-src 'none'")
  assert.equal(policy.get('script-src'), "script-src 'self'")
  assert.equal(policy.get('connect-src'), "connect-src 'self'")
  assert.equal(policy.get('frame-ancestors'), "frame-ancestors 'none'")
  assert.match(text, /<noscript>.*<a href="\/openapi\.json">/)
  assert.doesNotMatch(text, /<script(?![^>]* src=)/, 'no inline script, which the policy would stop')
})

test('every file that the page refers to is served with its type', async () => {
  const { text } = await api.get('/docs')
  const references = [...text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => path!)
  assert.ok(references.length >= 3)
  assert.ok(references.every((path) => path.startsWith('/')))
  const types: Record<string, RegExp> = { css: /^text\/css/, js: /^text\/javascript/, svg: /^image\/svg/ }
  for (const path of references.filter((reference) => /^\/(docs|pages)\//.test(reference))) {
    const { status, headers, bytes } = await api.get(path)
    assert.equal(status, 200, path)
    assert.match(headers['content-type'] as string, types[path.split('.').at(-1)!]!)
    assert.equal(headers['x-content-type-options'], 'nosniff')
    assert.ok(bytes.length > 50)
  }
})

test('neither the page nor its script names another host', () => {
  for (const name of ['docs.html', 'docs.js']) {
    const text = readFileSync(new URL(`../../edge/pages/docs/${name}`, import.meta.url), 'utf8')
    const hosts = text.replace(/\/\/ .*/g, '').match(/https?:|['"(=]\/\/\w/g)
    assert.equal(hosts, null, name)
  }
})

test('the files of the reference page are compressed', async () => {
  for (const path of ['/docs/swagger-ui-bundle.js', '/docs/swagger-ui.css', '/docs/docs.js']) {
    const plain = await api.get(path)
    for (const [encoding, decompress] of [
      ['br', brotliDecompressSync],
      ['gzip', gunzipSync],
    ] as const) {
      const { headers, bytes } = await api.get(path, { headers: { 'accept-encoding': encoding } })
      assert.deepEqual(
        [headers['content-encoding'], headers.vary, headers.etag],
        [encoding, 'accept-encoding', plain.headers.etag],
      )
      assert.ok(decompress(bytes).equals(plain.bytes), path)
      if (plain.bytes.length > 100_000)
        assert.ok(bytes.length < plain.bytes.length / 3, `${path}: ${bytes.length}`)
      assert.match(String(headers.etag), /^W\/"/)
    }
  }
})

test('/docs serves no other files, for any path', async () => {
  const paths = [
    '/docs/../package.json',
    '/docs/../../package.json',
    '/docs/..%2f..%2fpackage.json',
    '/docs/%2e%2e%2f%2e%2e%2fpackage.json',
  ]
  const names = [
    '/docs/docs.html',
    '/docs/package.json',
    '/docs/__proto__',
    '/docs/constructor',
    '/docs/',
    '/docs/index.html',
  ]
  for (const path of [...paths, ...names]) {
    const text = await api.raw(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`, 30)
    assert.match(text, /^HTTP\/1\.1 404 /, path)
    assert.doesNotMatch(text, /millrace"/)
  }
})

test('HEAD of the pages has their length and no body', async () => {
  for (const path of [
    '/metrics',
    '/docs',
    '/docs/docs.js',
    '/docs/swagger-ui.css',
    '/openapi.json',
    '/health',
    '/ready',
  ]) {
    const text = await api.raw(`HEAD ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`, 30)
    const [head = '', body] = text.split('\r\n\r\n')
    assert.match(head, /^HTTP\/1\.1 200 /, path)
    assert.match(head, /content-length: [1-9]/i, path)
    assert.equal(body, '', path)
  }
})
