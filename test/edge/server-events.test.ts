import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EventSink, Responder } from '../../edge/http/server.ts'
import { Client, pollUntil, request, serve, startChild } from './fixtures/raw.ts'

const STREAM_HEAD = { status: 200, headers: [['content-type', 'text/event-stream']] as const }

interface StreamServer {
  readonly sinks: EventSink[]
  readonly port: number
  readonly server: { readonly openStreams: number; close(): void }
  readonly errors: unknown[]
}

async function startStreamServer(t: Parameters<typeof serve>[0]): Promise<StreamServer> {
  const sinks: EventSink[] = []
  const { port, server, errors } = await serve(t, (_, responder) => {
    sinks.push(responder.openEvents(STREAM_HEAD))
  })
  return { sinks, port, server, errors }
}

async function openStream(
  t: Parameters<typeof serve>[0],
  streaming: StreamServer,
): Promise<[Client, EventSink]> {
  const client = await Client.connect(t, streaming.port)
  const before = streaming.sinks.length
  await client.send(request('GET /')).waitForText(':\n\n')
  return [client, streaming.sinks[before] as EventSink]
}

/** Returns the bytes of a chunked body. */
function decodeChunked(text: string): string {
  let rest = text.slice(text.indexOf('\r\n\r\n') + 4)
  let body = ''
  for (;;) {
    const line = rest.indexOf('\r\n')
    const size = Number.parseInt(rest.slice(0, line), 16)
    if (!(size > 0)) return body
    body += rest.slice(line + 2, line + 2 + size)
    rest = rest.slice(line + 2 + size + 2)
  }
}

test('a stream sends its headers and events, and ends', async (t) => {
  const streaming = await startStreamServer(t)
  const [client, sink] = await openStream(t, streaming)
  assert.match(client.text, /^HTTP\/1.1 200 OK\r\ncontent-type: text\/event-stream\r\n/)
  assert.equal(streaming.server.openStreams, 1)
  assert.equal(sink.write('data: 1\n\n'), true)
  assert.equal(sink.write(Buffer.from('data: 2\n\n')), true)
  sink.end('data: 3\n\n')
  await client.waitForText('\r\n0\r\n\r\n')
  assert.equal(decodeChunked(client.text), ':\n\ndata: 1\n\ndata: 2\n\ndata: 3\n\n')
  assert.deepEqual([sink.closed, sink.write('data: 4\n\n'), streaming.server.openStreams], [true, false, 0])
  sink.end()
})

test('a stream may start with a first event', async (t) => {
  const { port } = await serve(t, (seen, responder) => {
    responder.openEvents(STREAM_HEAD, seen.query).end()
  })
  for (const [line, body] of [
    ['GET /?first', 'first'],
    ['GET /', ':\n\n'],
  ] as const) {
    const client = await Client.connect(t, port)
    await client.send(request(line)).waitForText('\r\n0\r\n\r\n')
    assert.equal(decodeChunked(client.text), body)
  }
})

test('a write is one packet', async (t) => {
  const [client, sink] = await openStream(t, await startStreamServer(t))
  client.arrivals.length = 0
  sink.write('data: 1\n\n')
  await client.waitForText('data: 1')
  assert.equal(client.arrivals.length, 1)
})

test('a slow client becomes writable again, and everything arrives in order', async (t) => {
  const [client, sink] = await openStream(t, await startStreamServer(t))
  client.socket.pause()
  let sent = 0
  let waits = 0
  const writeOn = () => {
    while (sent < 3000) {
      if (sink.write(`data: ${sent++} ${'x'.repeat(10_000)}\n\n`)) continue
      waits++
      assert.deepEqual([sink.isWritable, sink.bufferedBytes > 10_000], [false, true])
      return
    }
    sink.end()
  }
  sink.onWritable(() => {
    assert.deepEqual([sink.isWritable, sink.bufferedBytes], [true, 0])
    writeOn()
  })
  writeOn()
  assert.equal(waits, 1)
  client.socket.resume()
  await client.waitForText('\r\n0\r\n\r\n')
  const numbers = [...decodeChunked(client.text).matchAll(/data: (\d+) x{10000}\n\n/g)].map((match) =>
    Number(match[1]),
  )
  assert.deepEqual(
    numbers,
    Array.from({ length: 3000 }, (_, i) => i),
  )
})

test('the tail arrives even if onWritable writes nothing', async (t) => {
  const [client, sink] = await openStream(t, await startStreamServer(t))
  client.socket.pause()
  assert.equal(sink.write(`data: ${'x'.repeat(16 * 1024 * 1024)} the tail\n\n`), false)
  client.socket.resume()
  await client.waitForText(' the tail\n\n')
  await pollUntil(() => sink.isWritable, 'the stream is writable again')
})

test('a stream that ends during backpressure arrives completely', async (t) => {
  const [client, sink] = await openStream(t, await startStreamServer(t))
  client.socket.pause()
  sink.write('x'.repeat(16 * 1024 * 1024))
  sink.end('the end')
  client.socket.resume()
  await client.waitForText('\r\n0\r\n\r\n')
  // Heartbeat comments may come in between. They show that the kernel accepted the earlier data.
  assert.match(client.text.slice(-500), /the end(\r\n3\r\n:\n\n)*\r\n0\r\n\r\n$/)
})

test('a disconnect closes the stream and calls every listener, even late ones', async (t) => {
  const streaming = await startStreamServer(t)
  const [client, sink] = await openStream(t, streaming)
  const heard: number[] = []
  for (const i of [1, 2]) sink.onClose(() => heard.push(i))
  client.socket.destroy()
  await pollUntil(() => heard.length === 2, 'the listeners are called')
  sink.onClose(() => heard.push(3))
  await pollUntil(() => heard.length === 3, 'the late listener is called')
  assert.deepEqual(
    [sink.closed, sink.isWritable, sink.write('x'), streaming.server.openStreams],
    [true, false, false, 0],
  )
})

test('a stream opened after a disconnect is closed', async (t) => {
  let kept: Responder | undefined
  const { port, server } = await serve(t, (_, responder) => {
    kept = responder
  })
  const client = await Client.connect(t, port)
  client.send(request('GET /'))
  await pollUntil(() => kept !== undefined, 'the handler runs')
  client.socket.destroy()
  await pollUntil(() => kept?.isDone === true, 'the client is gone')
  const sink = kept?.openEvents(STREAM_HEAD)
  let heard = false
  sink?.onClose(() => {
    heard = true
  })
  await pollUntil(() => heard, 'the listener is called')
  assert.deepEqual([sink?.closed, server.openStreams], [true, 0])
})

test('an error in a listener does not end the stream', async (t) => {
  const running = await startChild(t)
  const client = await Client.connect(t, running.port)
  await client.send(request('GET /throws-everywhere')).waitForText('xxx')
  await pollUntil(() => client.text.length > 8 * 1024 * 1024, 'all of it arrives')
  client.socket.destroy()
  const next = await Client.connect(t, running.port)
  await next.send(request('GET /throws-everywhere')).waitForText('xxx')
  assert.equal(running.exited(), false)
})
