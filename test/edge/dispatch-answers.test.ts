import assert from 'node:assert/strict'
import { test } from 'node:test'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import pino from 'pino'
import { z } from 'zod'
import { answerJson, area, route } from '../../edge/pipeline/route.ts'
import { fail } from '../../sql/errors.ts'
import { startEdge, startEdgeAndDatabase } from './harness.ts'

const lines: string[] = []
const log = pino({ level: 'info', base: null }, { write: (line: string) => void lines.push(line) })
/** Returns the access-log lines. The log also has lines about the health of the edge. */
const parseAccessLog = () => lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'Answered')
const jsonOfSize = (bytes: number): string => JSON.stringify('x'.repeat(bytes - 2))
const createThrowingRoute = (path: string, work: () => never) =>
  route({ method: 'get', path, summary: 'throws', response: z.string(), handle: work })
const areas = [
  area('t', '', { auth: 'public' }, [
    route({
      method: 'get',
      path: '/sized/:bytes',
      summary: 'sized',
      params: z.object({ bytes: z.string() }),
      response: z.string(),
      handle: ({ params }) => answerJson(jsonOfSize(Number(params.bytes))),
    }),
    createThrowingRoute('/throws', () => {
      throw new Error('password=hunter2 in select * from account')
    }),
    createThrowingRoute('/type', () => (undefined as unknown as { x: { y: never } }).x.y),
    createThrowingRoute('/string', () => {
      throw 'a bare string'
    }),
    createThrowingRoute('/busy', () => {
      throw fail('database.busy', {}, { cause: new Error('hunter2') })
    }),
    route({
      method: 'get',
      path: '/broken',
      summary: 'breaks its promise',
      response: z.int(),
      handle: () => 'no' as never,
    }),
    route({
      method: 'post',
      path: '/posted',
      summary: 'posted',
      body: z.object({}),
      response: z.string(),
      handle: () => 'ok',
    }),
    route({ method: 'delete', path: '/gone', summary: 'nothing', handle: () => undefined }),
  ]),
]
const { api, url } = await startEdgeAndDatabase({ areas, log })
const getSized = (bytes: number, acceptEncoding?: string, method = 'GET') =>
  api.call(method, `/sized/${bytes}`, {
    headers: acceptEncoding === undefined ? {} : { 'accept-encoding': acceptEncoding },
  })

test('compresses JSON of 1 KiB or more with gzip if accepted', async () => {
  const answer = await getSized(1024, 'gzip')
  assert.equal(answer.headers['content-encoding'], 'gzip')
  assert.equal(answer.headers.vary, 'accept-encoding')
  assert.equal(answer.headers['content-type'], 'application/json; charset=utf-8')
  assert.equal(answer.headers['content-length'], String(answer.bytes.length))
  assert.ok(answer.bytes.length < 200)
  assert.equal(gunzipSync(answer.bytes).toString(), jsonOfSize(1024))
})

test('compresses with brotli if accepted', async () => {
  const answer = await getSized(50_000, 'gzip, deflate, br')
  assert.equal(answer.headers['content-encoding'], 'br')
  assert.equal(answer.headers.vary, 'accept-encoding')
  assert.equal(brotliDecompressSync(answer.bytes).toString(), jsonOfSize(50_000))
})

test('sends less than 1 KiB uncompressed and without Vary', async () => {
  const answer = await getSized(1023, 'gzip, br')
  assert.equal(answer.headers['content-encoding'], undefined)
  assert.equal(answer.headers.vary, undefined)
  assert.equal(answer.text, jsonOfSize(1023))
})

test('sends an uncompressed answer with Vary if no coding is accepted', async () => {
  for (const header of [undefined, '', 'identity', 'deflate', 'zstd']) {
    const answer = await getSized(2000, header)
    assert.equal(answer.headers['content-encoding'], undefined, header)
    assert.equal(answer.headers.vary, 'accept-encoding')
    assert.equal(answer.text, jsonOfSize(2000))
  }
})

test('honours weights: zero forbids, the highest wins, a star covers unnamed codings', async () => {
  const expected: Readonly<Record<string, string | undefined>> = {
    'gzip;q=1.0, br;q=0.5': 'gzip',
    'gzip;q=0.5, br;q=0.8': 'br',
    'gzip; q=0.2 , br; q=0.1': 'gzip',
    'gzip, br': 'br',
    GZIP: 'gzip',
    'br;q=0, gzip': 'gzip',
    'gzip;q=0': undefined,
    'gzip;q=0, br;q=0.0': undefined,
    '*': 'br',
    '*;q=0': undefined,
    'br;q=0, *': 'gzip',
    'br;q=0, *;q=0.5': 'gzip',
    '*;q=0.5, br;q=0': 'gzip',
    'gzip;q=0, *;q=0.1': 'br',
    'gzip, *;q=0': 'gzip',
    'br;q=0, gzip;q=0, *': undefined,
    'gzip;q=nonsense': undefined,
  }
  for (const [header, coding] of Object.entries(expected)) {
    assert.equal((await getSized(2000, header)).headers['content-encoding'], coding, header)
  }
})

test('HEAD of a compressed answer has the same length as GET', async () => {
  const get = await getSized(3000, 'br')
  const head = await getSized(3000, 'br', 'HEAD')
  assert.deepEqual([head.headers['content-length'], head.bytes.length], [String(get.bytes.length), 0])
  assert.equal(head.headers['content-encoding'], 'br')
})

test('an exception is a 500 with only the request id, and the log has the exception', async () => {
  lines.length = 0
  const answer = await api.get('/throws', { headers: { 'x-request-id': 'req-42' } })
  assert.equal(answer.status, 500)
  assert.deepEqual(answer.json, { detail: 'Internal error (request req-42)', code: 'internal' })
  assert.equal(answer.headers['x-request-id'], 'req-42')
  assert.equal(answer.headers['content-type'], 'application/json; charset=utf-8')
  const logged = lines.map((line) => JSON.parse(line)).find(({ msg }) => msg === 'A request failed')
  assert.equal(logged.requestId, 'req-42')
  assert.match(logged.err.message, /hunter2/)
  assert.ok(parseAccessLog().some(({ status, requestId }) => status === 500 && requestId === 'req-42'))
})

test('any thrown value gives the same answer, and the next request succeeds', async () => {
  for (const path of ['/type', '/string', '/broken']) {
    const answer = await api.get(path)
    assert.equal(answer.status, 500, path)
    assert.match(answer.json.detail, /^Internal error \(request [\w-]+\)$/)
    assert.deepEqual(Object.keys(answer.json), ['detail', 'code'])
  }
  assert.equal((await getSized(10)).status, 200)
})

test('overload is a 503 with Retry-After', async () => {
  const answer = await api.get('/busy')
  assert.equal(answer.status, 503)
  assert.deepEqual(answer.json, {
    detail: 'The service is overloaded; try again shortly',
    code: 'database.busy',
  })
  assert.equal(answer.headers['retry-after'], '1')
})

test('204 has no body, no length and no type', async () => {
  const answer = await api.call('DELETE', '/gone')
  assert.deepEqual([answer.status, answer.bytes.length], [204, 0])
  assert.equal(answer.headers['content-length'], undefined)
  assert.equal(answer.headers['content-type'], undefined)
  assert.ok(answer.headers['x-request-id'])
})

test('reads, writes and refusals log one line with their request id', async () => {
  lines.length = 0
  const read = await getSized(10)
  await api.post('/posted', { json: {}, headers: { 'x-request-id': 'w-1' } })
  await api.get('/nothing', { headers: { 'x-request-id': 'w-2' } })
  const logged = parseAccessLog().map(({ requestId, method, path, status, address }) => [
    requestId,
    method,
    path,
    status,
    address,
  ])
  assert.deepEqual(logged, [
    [read.headers['x-request-id'], 'GET', '/sized/10', 200, '127.0.0.1'],
    ['w-1', 'POST', '/posted', 200, '127.0.0.1'],
    ['w-2', 'GET', '/nothing', 404, '127.0.0.1'],
  ])
})

test('behind a trusted proxy the log has the client address from the proxy', async () => {
  const proxied = await startEdge(url, { areas, log, env: { TRUST_PROXY: 'true' } })
  // The proxy appends its peer's address; the client controls everything before it.
  const headers = { 'x-forwarded-for': '10.0.0.1, 203.0.113.7' }
  lines.length = 0
  await proxied.get('/nothing', { headers })
  await api.get('/nothing', { headers })
  assert.deepEqual(
    parseAccessLog().map(({ address }) => address),
    ['203.0.113.7', '127.0.0.1'],
  )
})
