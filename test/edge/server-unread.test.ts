import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EventSink } from '../../edge/http/server.ts'
import { Client, pollUntil, request, serve } from './fixtures/raw.ts'
import { startEdgeAndDatabase } from './harness.ts'

const { api } = await startEdgeAndDatabase()
const LARGE_BODY = 'x'.repeat(370_000)

test('a client that sends 5,000 requests without reading is disconnected after few answers', async (t) => {
  let answered = 0
  const { port, errors } = await serve(t, (_, responder) => {
    answered++
    responder.send({ status: 200, headers: [], body: LARGE_BODY })
  })
  const client = await Client.connect(t, port)
  client.socket.pause()
  client.send(request('GET /').repeat(5_000))
  client.socket.resume()
  await client.waitForClose()
  // The kernel's buffers limit the number of answers.
  assert.ok(answered < 100, `${answered} were answered`)
  assert.deepEqual(errors, [])
})

test('a new request while the previous answer is blocked closes the connection', async (t) => {
  let asked = 0
  const { port } = await serve(t, (_, responder) => {
    asked++
    responder.send({ status: 200, headers: [], body: 'x'.repeat(64 * 1024 * 1024) })
  })
  const client = await Client.connect(t, port)
  client.socket.pause()
  client.send(request('GET /'))
  await pollUntil(() => asked === 1, 'it is asked')
  client.send(request('GET /'))
  client.socket.resume()
  await client.waitForClose()
  assert.equal(asked, 1)
})

test('an answer that is read late arrives completely, and the connection stays open', async (t) => {
  const { port, errors } = await serve(t, ({ path }, responder) => {
    const body = path === '/text' ? 'ä'.repeat(8 * 1024 * 1024) : Buffer.alloc(16 * 1024 * 1024, 'b')
    responder.send({ status: 200, headers: [], body: path === '/last' ? 'last' : body })
  })
  const client = await Client.connect(t, port)
  for (const path of ['/text', '/bytes']) {
    client.socket.pause()
    client.send(request(`GET ${path}`))
    await new Promise((resolve) => setTimeout(resolve, 50))
    client.socket.resume()
    const whole = (): number => client.arrivals.reduce((sum, { length }) => sum + length, 0)
    await pollUntil(() => whole() > 16 * 1024 * 1024, 'it is there')
    const [head, body] = Buffer.concat(client.arrivals).toString('latin1').split('\r\n\r\n') as [
      string,
      string,
    ]
    assert.match(head, /Content-Length: 16777216$/)
    assert.equal(
      body,
      (path === '/text' ? Buffer.from('ä').toString('latin1') : 'bb').repeat(8 * 1024 * 1024),
    )
    client.arrivals.length = 0
  }
  await client.send(request('GET /last')).waitForText('\r\n\r\nlast')
  assert.deepEqual(errors, [])
})

test('answers without a body do not accumulate for a client that never reads', async (t) => {
  let answered = 0
  const { port } = await serve(t, (seen, responder) => {
    answered++
    responder.send({ status: seen.method === 'HEAD' ? 200 : 204, headers: [], body: 'body', isHead: true })
  })
  for (const line of ['HEAD /', 'OPTIONS /']) {
    answered = 0
    const client = await Client.connect(t, port)
    client.send(request(line).repeat(20_000))
    await client.waitForClose()
    assert.ok(answered <= 1024, `${answered} were answered`)
    // The reset discards the earlier answers. A client that stops at the limit gets `Connection: close`.
    answered = 0
    const polite = await Client.connect(t, port)
    polite.send(request(line).repeat(1024))
    await polite.waitForText('\r\nConnection: close\r\n\r\n')
    assert.equal(answered, 1024)
  }
})

test('a stream that ends before it is read accepts no further request', async (t) => {
  const sinks: EventSink[] = []
  const { port } = await serve(t, (_, responder) => {
    sinks.push(responder.openEvents({ status: 200, headers: [] }))
  })
  const slow = await Client.connect(t, port)
  await slow.send(request('GET /')).waitForText(':\n\n')
  slow.socket.pause()
  sinks[0]!.end(`${'x'.repeat(16 * 1024 * 1024)}tail`)
  slow.socket.resume()
  await slow.waitForText('tail')
  await slow.waitForText('\r\n0\r\n\r\n')
  await slow.send(request('GET /')).waitForText(':\n\n')
  await pollUntil(() => sinks.length === 2, 'the connection lives on')
  slow.socket.pause()
  sinks[1]!.end('x'.repeat(16 * 1024 * 1024))
  slow.send(request('GET /'))
  slow.socket.resume()
  await slow.waitForClose()
  assert.equal(sinks.length, 2)
})

test('others are served while connections send 5,000 requests without reading', async (t) => {
  await api.get('/openapi.json')
  const hostile = await Promise.all([1, 2, 3].map(() => Client.connect(t, api.port)))
  for (const client of hostile) {
    client.socket.pause()
    client.send(request('GET /openapi.json').repeat(5_000))
  }
  // Measure the CPU time of this process, which includes the edge, because wall time depends on other load.
  const costs: number[] = []
  for (let i = 0; i < 300; i++) {
    const before = process.cpuUsage()
    assert.equal((await api.get('/health')).status, 200)
    const { user, system } = process.cpuUsage(before)
    costs.push((user + system) / 1000)
  }
  costs.sort((a, b) => a - b)
  const p99 = costs[296]!
  assert.ok(p99 < 100, `p99 ${p99} ms`)
})
