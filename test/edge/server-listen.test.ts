import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { test } from 'node:test'
import { createServer } from '../../edge/http/server.ts'
import { findFreePort } from '../free-port.ts'
import { Client, pollUntil, request, serve, startChild } from './fixtures/raw.ts'

const createNamedServer = (name: string) =>
  createServer((_, responder) => responder.send({ status: 200, headers: [], body: name }), {
    onError: () => {},
  })

test('an exclusive port rejects a second process, and a shared one accepts it', async (t) => {
  const host = '127.0.0.1'
  // Use a fixed port, because uWS never shares a port that it chose itself.
  const port = await findFreePort()
  await startChild(t, { port, exclusive: false })
  const own = createNamedServer('own')
  t.after(() => own.close())
  await assert.rejects(own.listen({ host, port, exclusive: true }), {
    message: `Port ${port} of 127.0.0.1 is in use: stop the process that listens there, or set another port`,
  })
  assert.deepEqual(await own.listen({ host, port, exclusive: false }), { port })
  const seen = new Set<string>()
  const ask = async () => {
    const client = await Client.connect(t, port)
    await client.send(request('GET /late?0')).waitForText('\r\n\r\n')
    seen.add(client.text.slice(-3))
  }
  // The kernel distributes connections at random; 64 miss one of two processes with a probability below 1e-18.
  for (let i = 0; i < 64; i++) await ask()
  assert.deepEqual([...seen].sort(), ['ate', 'own'])
})

test('an exclusive port rejects a second server of the same process', async (t) => {
  const { port } = await serve(t, () => {})
  const second = createNamedServer('second')
  await assert.rejects(second.listen({ host: '127.0.0.1', port, exclusive: true }))
  await assert.rejects(second.listen({ host: '127.0.0.1', port, exclusive: false }))
})

test('native options out of range are rejected before they reach the core', async () => {
  for (const port of [-1, 65_536, 1.5, Number.NaN]) {
    await assert.rejects(
      createNamedServer('').listen({ host: '127.0.0.1', port, exclusive: true }),
      RangeError,
    )
  }
})

test('an address of another machine is rejected', async () => {
  await assert.rejects(createNamedServer('').listen({ host: '192.0.2.1', port: 0, exclusive: true }), {
    message: "HOST can't be 192.0.2.1: it is not an address of this machine",
  })
})

test('close cuts every connection, and waiting handlers are notified', async (t) => {
  const closed: string[] = []
  const { port, server } = await serve(t, (seen, responder) => {
    if (seen.path === '/stream')
      responder.openEvents({ status: 200, headers: [] }).onClose(() => closed.push('stream'))
    else if (seen.path === '/waits') responder.onClose(() => closed.push('waits'))
    else responder.send({ status: 200, headers: [], body: 'idle' })
  })
  const clients = await Promise.all([1, 2, 3].map(() => Client.connect(t, port)))
  const [idle, waiting, streaming] = clients as [Client, Client, Client]
  await idle.send(request('GET /')).waitForText('idle')
  waiting.send(request('GET /waits'))
  await streaming.send(request('GET /stream')).waitForText(':\n\n')
  assert.equal(server.openStreams, 1)
  server.close()
  for (const client of clients) await client.waitForClose()
  assert.deepEqual([closed.sort(), server.openStreams], [['stream', 'waits'], 0])
})

test('leaving accepts pending connections, answers each for the last time, and rejects new ones', async (t) => {
  let answer: (() => void) | undefined
  const { port, server } = await serve(t, (seen, responder) => {
    if (seen.path === '/waits') answer = () => responder.send({ status: 200, headers: [], body: 'at last' })
    else if (seen.path === '/pieces')
      void responder.beginBody({ status: 200, headers: [] }, 6).write(Buffer.from('pieces'))
    else responder.send({ status: seen.path === '/empty' ? 204 : 200, headers: [], body: 'served' })
  })
  const [kept, waiting, empty, pieces] = await Promise.all([1, 2, 3, 4].map(() => Client.connect(t, port)))
  await kept!.send(request('GET /')).waitForText('served')
  assert.doesNotMatch(kept!.text, /connection: close/i)
  waiting!.send(request('GET /waits'))
  await pollUntil(() => answer !== undefined, 'the request is there')
  // The kernel has connected this socket, but the server has not accepted it yet.
  const knocking = net.connect(port, '127.0.0.1')
  t.after(() => knocking.destroy())
  const [data] = await Promise.all([
    once(knocking, 'data'),
    once(knocking, 'connect').then(() => {
      knocking.write(request('POST /', {}, 'body'))
      return server.drain()
    }),
  ])
  assert.match(String(data), /Connection: close[\s\S]*served$/)
  let left = false
  const deserted = server.whenDisconnected().then(() => {
    left = true
  })
  await assert.rejects(Client.connect(t, port), /ECONNREFUSED/)
  kept!.arrivals.length = 0
  await kept!.send(request('GET /')).waitForText('served')
  assert.match(kept!.text, /\r\nConnection: close\r\n/)
  await kept!.waitForClose()
  answer!()
  await waiting!.waitForText('at last')
  assert.match(waiting!.text, /\r\nConnection: close\r\n/)
  await waiting!.waitForClose()
  // In these cases the client closes the connection.
  for (const [client, path] of [
    [empty!, '/empty'],
    [pieces!, '/pieces'],
  ] as const) {
    await client.send(request(`GET ${path}`)).waitForText('\r\n\r\n')
    assert.match(client.text, /\r\nConnection: close\r\n/)
    assert.equal(left, false)
    client.socket.end()
  }
  await deserted
})
