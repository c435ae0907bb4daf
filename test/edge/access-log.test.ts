import assert from 'node:assert/strict'
import { test } from 'node:test'
import pino from 'pino'
import { until } from '../until.ts'
import { Client } from './fixtures/raw.ts'
import { type Answered, startEdge, startEdgeAndDatabase } from './harness.ts'

interface LogLine {
  readonly msg: string
  readonly level: number
  readonly [name: string]: unknown
}

/** Creates a pino logger and collects the access-log lines that it writes. */
function createLogger(level = 'info') {
  const lines: LogLine[] = []
  const write = (text: string): void => {
    const line = JSON.parse(text) as LogLine
    if (line.msg === 'Answered') lines.push(line)
  }
  return { lines, log: pino({ level, redact: ['account'] }, { write }) }
}

const allLines = createLogger()
const { api, url } = await startEdgeAndDatabase({ log: allLines.log })
const errorLines = createLogger()
const errorsEdge = await startEdge(url, { env: { ACCESS_LOG: 'errors' }, log: errorLines.log })
const noLines = createLogger()
const silentEdge = await startEdge(url, { env: { ACCESS_LOG: 'none' }, log: noLines.log })
const { token, id } = await api.register('ann@example.com')

/**
 * Waits for the access-log line of an answer. The edge may write the line after the client has read the answer, for
 * example a streamed one.
 */
const waitForLine = ({ headers }: Answered): Promise<LogLine> =>
  until('the access-log line', () =>
    allLines.lines.find(({ requestId }) => requestId === headers['x-request-id']),
  )

test('every request has one line, including reads, refusals and unknown paths', async () => {
  allLines.lines.length = 0
  const asked = [
    await api.get('/health', { headers: { 'x-request-id': 'mine-1' } }),
    await api.get('/api/v1/documents/12', { token }),
    await api.get('/no/such/path'),
    await api.call('DELETE', '/health'),
    await api.call('HEAD', '/health'),
    await api.get('/api/v1/auth/me', { token }),
  ]
  await until('a line for each request', () => allLines.lines.length === asked.length)
  const seen = allLines.lines.map(({ method, route, status, account }) => [method, route, status, account])
  assert.deepEqual(seen, [
    ['GET', '/health', 200, null],
    ['GET', '/api/v1/documents/:id', 404, id],
    ['GET', null, 404, null],
    ['DELETE', null, 405, null],
    ['HEAD', '/health', 200, null],
    ['GET', '/api/v1/auth/me', 200, id],
  ])
  for (const [i, { bytes, headers }] of asked.entries()) {
    const line = allLines.lines[i]!
    assert.equal(line.bytes, bytes.length)
    assert.equal(line.requestId, headers['x-request-id'])
    assert.ok((line.ms as number) >= 0)
    assert.equal(line.address, '127.0.0.1')
  }
  assert.equal(allLines.lines[0]!.requestId, 'mine-1')
})

test('the logged byte count is the number of bytes sent, compressed and chunked', async () => {
  const small = await api.get('/openapi.json', { headers: { 'accept-encoding': 'gzip' } })
  const { json } = await api.upload(token, 'x'.repeat(300_000))
  const whole = await api.get(`/api/v1/documents/${json.id}/content`, { token })
  const part = await api.get(`/api/v1/documents/${json.id}/content`, {
    token,
    headers: { range: 'bytes=10-19' },
  })
  for (const [answer, bytes] of [
    [small, small.bytes.length],
    [whole, 300_000],
    [part, 10],
  ] as const)
    assert.deepEqual([answer.bytes.length, (await waitForLine(answer)).bytes], [bytes, bytes])
})

test('the log level limits lines to errors or disables them', async () => {
  for (const edge of [errorsEdge, silentEdge]) {
    await edge.get('/health')
    await edge.post('/api/v1/auth/register', {
      json: { email: `x${edge.port}@example.com`, password: 'long enough' },
    })
    await edge.get('/api/v1/documents/12', { token })
    await edge.get('/no/such/path')
  }
  await until('both refusals', () => errorLines.lines.length === 2)
  assert.deepEqual(
    errorLines.lines.map(({ status, path }) => [status, path]),
    [
      [404, '/api/v1/documents/12'],
      [404, '/no/such/path'],
    ],
  )
  assert.deepEqual(noLines.lines, [])
})

test('a request with invalid framing has a line and a request id, too', async (t) => {
  allLines.lines.length = 0
  const client = await Client.connect(t, api.port)
  await client
    .send('GET /health HTTP/1.1\r\nhost: a\r\nhost: b\r\nx-request-id: framed-1\r\n\r\n')
    .waitForClose()
  assert.match(client.text, /^HTTP\/1\.1 400 /)
  assert.match(client.text, /x-request-id: framed-1/i)
  assert.match(
    client.text,
    /\{"detail":"The request could not be read: its framing is ambiguous","code":"request.malformed"\}/,
  )
  await until('the access-log line', () => allLines.lines.length === 1)
  assert.deepEqual([allLines.lines[0]!.status, allLines.lines[0]!.requestId], [400, 'framed-1'])
})

test('a credential in a path is not logged', async () => {
  const { path } = await waitForLine(await api.get('/api/v1/blog/preview/1.secret'))
  assert.equal(path, '/api/v1/blog/preview/:token')
})
