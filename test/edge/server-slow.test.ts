import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { buildCommonHeaders } from '../../edge/http/reply.ts'
import type { EventSink } from '../../edge/http/server.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { Client, pollUntil, request, serve } from './fixtures/raw.ts'

// Exceeds the 10 s timer of uWS, which ticks every 4 s. All tests run concurrently.
const BEYOND_TIMER_MS = 12_500

describe('requests longer than the 10 s timer of uWS', { concurrency: true }, () => {
  test('a sink that takes 12 s gets the whole upload', async (t) => {
    const size = 8 * 1024 * 1024
    let first = true
    const { port, errors } = await serve(t, async (incoming, responder) => {
      const total = await incoming.body.streamTo(async () => {
        if (first) await delay(BEYOND_TIMER_MS)
        first = false
      }, size)
      responder.send({ status: 200, headers: [], body: `${total} bytes` })
    })
    const client = await Client.connect(t, port)
    client.send(request('POST /', { 'content-length': String(size) }))
    client.socket.write(Buffer.alloc(size))
    await client.waitForText(`${size} bytes`, 60_000)
    assert.deepEqual(errors, [])
  })

  test('a handler that takes 12 s after the body still answers', async (t) => {
    const size = 600 * 1024
    const { port } = await serve(t, async (incoming, responder) => {
      // Read late, so that the socket is paused once its buffer is full.
      await delay(200)
      await incoming.body.readBytes(size)
      await delay(BEYOND_TIMER_MS)
      responder.send({ status: 200, headers: [], body: 'worked' })
    })
    const client = await Client.connect(t, port)
    client.send(request('POST /', {}, 'x'.repeat(size)))
    await client.waitForText('worked', 60_000)
  })

  test('a client that reads none of a large answer is disconnected within 15 s', async (t) => {
    // Count only seconds in which this process ran, as uWS does.
    let seconds = 0
    const clock = setInterval(() => seconds++, 1000)
    t.after(() => clearInterval(clock))
    let closedAfter: number | null = null
    const { port } = await serve(t, (_, responder) => {
      responder.onClose(() => {
        closedAfter = seconds
      })
      responder.send({ status: 200, headers: [], body: Buffer.alloc(32 * 1024 * 1024) })
    })
    const client = await Client.connect(t, port)
    client.socket.pause()
    client.send(request('GET /'))
    await pollUntil(() => closedAfter !== null, 'it is closed', 60_000)
    assert.ok(closedAfter! < 15, `after ${closedAfter} s`)
  })

  test('an idle connection stays open longer than the announced keep-alive', async (t) => {
    const [, promised] = buildCommonHeaders(parseSettings({})).find(([name]) => name === 'keep-alive')!
    const { port } = await serve(t, (_, responder) => responder.send({ status: 200, headers: [], body: 'x' }))
    // The timer of uWS ticks every 4 s.
    const idle = Array.from({ length: 8 }, async (_, i) => {
      await delay(i * 500)
      const client = await Client.connect(t, port)
      await client.send(request('GET /')).waitForText('x')
      const from = performance.now()
      await client.waitForClose(60_000)
      return (performance.now() - from) / 1000
    })
    const shortest = Math.min(...(await Promise.all(idle)))
    assert.ok(shortest > Number(promised.slice('timeout='.length)), `${shortest} s, and ${promised}`)
  })

  test('a request that uWS considers incomplete is closed and never reaches the handler', async (t) => {
    const { port } = await serve(t, () => assert.fail('it was handed over'))
    const headers = ['x: a\0b', 'x: a\x01b', 'x\0: a', 'x: a\r\n b']
    await Promise.all(
      headers.map(async (header) => {
        const client = await Client.connect(t, port)
        await client.send(`GET / HTTP/1.1\r\nhost: a\r\n${header}\r\n\r\n`).waitForClose(60_000)
        assert.equal(client.text, '')
      }),
    )
  })

  test('idle and previously slow event streams stay open', async (t) => {
    const sinks = new Map<string, EventSink>()
    const { port } = await serve(t, (seen, responder) => {
      sinks.set(seen.path, responder.openEvents({ status: 200, headers: [] }))
    })
    const idle = await Client.connect(t, port)
    await idle.send(request('GET /idle')).waitForText(':\n\n')
    const slow = await Client.connect(t, port)
    await slow.send(request('GET /slow')).waitForText(':\n\n')
    slow.socket.pause()
    assert.equal(sinks.get('/slow')?.write(`${'x'.repeat(16 * 1024 * 1024)}tail`), false)
    slow.socket.resume()
    await slow.waitForText('tail')
    await pollUntil(() => sinks.get('/slow')?.isWritable === true, 'it is writable again')
    await delay(BEYOND_TIMER_MS)
    for (const sink of sinks.values()) sink.end('still open')
    await idle.waitForText('still open')
    await slow.waitForText('still open')
  })
})
