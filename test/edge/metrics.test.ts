import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { test } from 'node:test'
import pino from 'pino'
import { createMatcher } from '../../edge/pipeline/match.ts'
import { areas } from '../../edge/routes/index.ts'
import { type Api, edgeAndDatabase, startEdge } from './harness.ts'

/** Who may read the measurements, how large they are, and how often they are made. */

const { api, url } = await edgeAndDatabase()
const TOKEN = 'Metrics-token.0123456789'
const PRODUCTION = { NODE_ENV: 'production', DATABASE_URL: 'postgresql://unused' }
const lines: string[] = []
const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) })

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}

const metricsPort = await freePort()
const closed = await startEdge(url, { env: PRODUCTION, log })
const guarded = await startEdge(url, { env: { ...PRODUCTION, METRICS_TOKEN: TOKEN } })
const apart = await startEdge(url, { env: { ...PRODUCTION, METRICS_PORT: String(metricsPort) } })

const status = async (edge: Api, authorization?: string): Promise<number> =>
  (await edge.get('/metrics', { headers: authorization === undefined ? {} : { authorization } })).status

test('production without a token or a port has no metrics, and says so at the start', async () => {
  assert.deepEqual([await status(closed), await status(closed, `Bearer ${TOKEN}`)], [404, 404])
  assert.equal(
    lines.filter((line) => line.includes('neither METRICS_TOKEN nor METRICS_PORT is set')).length,
    1,
  )
})

test('a token is for its bearer', async () => {
  assert.deepEqual(
    [await status(guarded, `Bearer ${TOKEN}`), await status(guarded, `bearer ${TOKEN}`)],
    [200, 200],
  )
  for (const wrong of [undefined, `Bearer ${TOKEN}x`, `Bearer ${TOKEN.slice(1)}`, `Basic ${TOKEN}`, TOKEN])
    assert.equal(await status(guarded, wrong), 401, wrong)
})

test('a port of its own serves the metrics and nothing else, and the other port none', async () => {
  assert.equal(await status(apart), 404)
  const at = `http://127.0.0.1:${metricsPort}`
  const answer = await fetch(`${at}/metrics`)
  assert.equal(answer.status, 200)
  assert.match(await answer.text(), /^http_requests_total\{method="GET",route="\/metrics",status="4xx"\} 1$/m)
  assert.equal((await fetch(`${at}/metrics`, { method: 'HEAD' })).status, 200)
  for (const path of ['/health', '/', '/metrics/x']) assert.equal((await fetch(at + path)).status, 404, path)
  assert.equal((await fetch(`${at}/metrics`, { method: 'POST' })).status, 404)
})

test('readers within a second are given the same bytes, compressed or not', async () => {
  const { metrics } = api.serving.edge
  // Two texts may meet a turn of the second; of three pairs one does not.
  const pairs = await Promise.all([1, 2, 3].map(async () => [await metrics.text(), await metrics.text()]))
  assert.ok(pairs.some(([one, other]) => one === other))
  const plain = await api.get('/metrics')
  const small = await api.get('/metrics', { headers: { 'accept-encoding': 'br' } })
  assert.deepEqual([plain.headers['content-encoding'], small.headers['content-encoding']], [undefined, 'br'])
  assert.ok(small.bytes.length < plain.bytes.length / 2)
})

test('whatever was asked, the text stays under 200 KB', async () => {
  const { metrics } = guarded.serving.edge
  const { entries } = createMatcher(areas)
  assert.ok(entries.length > 140)
  for (let round = 0; round < 1000; round++) {
    for (const name of ['GET', 'HEAD', 'OPTIONS', 'BREW', `M${round}`])
      metrics.answered(null, name, 404, 0.02)
  }
  for (const entry of entries)
    for (const method of ['GET', 'HEAD', 'OPTIONS', 'POST'])
      for (const status of [0, 200, 201, 204, 302, 304, 400, 401, 404, 422, 429, 500, 503])
        metrics.answered(entry, method, status, 123.456789)
  const authorization = `Bearer ${TOKEN}`
  for (;;) {
    const { bytes, text } = await guarded.get('/metrics', { headers: { authorization } })
    // Of the second before it may know nothing.
    if (!text.includes('method="other"')) continue
    assert.ok(bytes.length < 200_000, `${bytes.length} bytes`)
    break
  }
})
