import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { until } from '../until.ts'
import { type Api, startEdge, startEdgeAndDatabase } from './harness.ts'

const env = { MAX_STREAMS_PER_ADDRESS: '3', MAX_STREAMS_PER_ACCOUNT: '2', TRUST_PROXY: 'true' }
const { api, url, query } = await startEdgeAndDatabase({ env })
const unlimitedEdge = await startEdge(url, {
  env: { MAX_STREAMS_PER_ADDRESS: '0', MAX_STREAMS_PER_ACCOUNT: '0' },
})
const [ann, bob] = [await api.register('ann@example.com'), await api.register('bob@example.com')]
const abortAll = new AbortController()
after(() => abortAll.abort())

interface OpenedStream {
  readonly status: number
  readonly leave: () => void
}

async function openStream(
  edge: Api,
  headers: Record<string, string>,
  path = '/api/v1/jobs/events',
): Promise<OpenedStream> {
  const own = new AbortController()
  const signal = AbortSignal.any([own.signal, abortAll.signal])
  const answer = await fetch(`http://127.0.0.1:${edge.port}${path}`, { headers, signal })
  if (answer.status !== 200) await answer.text()
  return { status: answer.status, leave: () => own.abort() }
}
const createForwardedHeaders = (address: string) => ({ 'x-forwarded-for': address })
const createSessionHeaders = (token: string, address = '192.0.2.9') => ({
  authorization: `Bearer ${token}`,
  ...createForwardedHeaders(address),
})
const openStreams = async (headers: Record<string, string>, times: number): Promise<OpenedStream[]> => {
  const streams: OpenedStream[] = []
  for (let i = 0; i < times; i++) streams.push(await openStream(api, headers))
  return streams
}
const statusesOf = (streams: readonly OpenedStream[]): number[] => streams.map(({ status }) => status)

test('limits anonymous streams per address, independent of others', async () => {
  const streams = await openStreams(createForwardedHeaders('192.0.2.1'), 4)
  assert.deepEqual(statusesOf(streams), [200, 200, 200, 429])
  assert.deepEqual(statusesOf(await openStreams(createForwardedHeaders('192.0.2.2'), 1)), [200])
  assert.deepEqual(statusesOf(await openStreams(createSessionHeaders(ann.token, '192.0.2.1'), 1)), [200])
  streams[1]!.leave()
  await until(
    "the stream's slot is free",
    async () => (await openStream(api, createForwardedHeaders('192.0.2.1'))).status === 200,
  )
  assert.deepEqual(statusesOf(await openStreams(createForwardedHeaders('192.0.2.1'), 1)), [429])
})

test('limits streams per account from any address', async () => {
  const streams = [
    ...(await openStreams(createSessionHeaders(bob.token), 1)),
    ...(await openStreams(createSessionHeaders(bob.token, '192.0.2.10'), 2)),
  ]
  assert.deepEqual(statusesOf(streams), [200, 200, 429])
  const { json } = await api.get('/api/v1/jobs/events', { token: bob.token })
  assert.deepEqual(json, {
    detail: 'Too many event streams are open; close one first',
    code: 'stream.limited',
  })
  streams[0]!.leave()
  await until(
    "the stream's slot is free",
    async () => (await openStream(api, createSessionHeaders(bob.token))).status === 200,
  )
})

test('admits no more than the limit of concurrent requests', async () => {
  const all = await Promise.all(
    Array.from({ length: 20 }, () => openStream(api, createForwardedHeaders('192.0.2.3'))),
  )
  assert.equal(all.filter(({ status }) => status === 200).length, 3)
})

test('rejected requests and requests without a stream use no slot', async () => {
  for (let i = 0; i < 5; i++) {
    const missing = '/api/v1/jobs/0198c5a0-0000-7000-8000-000000000000/events'
    assert.equal((await openStream(api, createForwardedHeaders('192.0.2.4'), missing)).status, 404)
    const head = await api.call('HEAD', '/api/v1/jobs/events', {
      headers: createForwardedHeaders('192.0.2.4'),
    })
    assert.equal(head.status, 200)
  }
  assert.deepEqual(statusesOf(await openStreams(createForwardedHeaders('192.0.2.4'), 3)), [200, 200, 200])
})

test('rejects a first stream of a job before the job is added', async () => {
  await openStreams(createForwardedHeaders('192.0.2.5'), 3)
  const answer = await api.post('/api/v1/ai/chat/stream', {
    json: { message: 'hello' },
    headers: createForwardedHeaders('192.0.2.5'),
  })
  assert.equal(answer.status, 429, answer.text)
  assert.deepEqual(await query(`select 1 from job where queue = 'ai'`), [])
})

test('0 disables the limit', async () => {
  const all = await Promise.all(Array.from({ length: 150 }, () => openStream(unlimitedEdge, {})))
  assert.ok(all.every(({ status }) => status === 200))
})
