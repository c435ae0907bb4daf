import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { type BodyWriter, HeaderBlock, type Responder } from '../../edge/http/server.ts'
import { Client, pollUntil, readResidentMiB, request, serve, startChild } from './fixtures/raw.ts'

const OK_HEAD = { status: 200, headers: [] }
// All tests share this process, so a test that crashes it also fails the later ones.
const serverProcess = await startChild({ after })

test('a handler that returns without an answer leaves the process and connection alive', async (t) => {
  const client = await Client.connect(t, serverProcess.port)
  client.send(request('GET /silent'))
  const other = await Client.connect(t, serverProcess.port)
  await other.send(`${request('GET /silent')}no request\r\n\r\n`).waitForClose()
  assert.deepEqual([serverProcess.exited(), client.closed], [false, false])
})

test('a synchronous throw and a rejection are 500', async (t) => {
  for (const path of ['/throws', '/rejects']) {
    const client = await Client.connect(t, serverProcess.port)
    await client.send(request(`GET ${path}`)).waitForText('{"detail":"Internal error","code":"internal"}')
    assert.match(
      client.text,
      /^HTTP\/1.1 500 Internal Server Error\r\ncontent-type: application\/json; charset=utf-8\r\n/,
    )
    assert.equal(serverProcess.exited(), false)
  }
})

test('handler errors are passed to onError', async (t) => {
  const { port, errors } = await serve(t, async () => {
    throw new Error('secret')
  })
  const client = await Client.connect(t, port)
  await client.send(request('GET /')).waitForText('500')
  assert.deepEqual([errors.map(String), client.text.includes('secret')], [['Error: secret'], false])
})

test('an answer survives a later throw', async (t) => {
  const { port, errors } = await serve(t, (_, responder) => {
    responder.send({ ...OK_HEAD, body: 'answered' })
    throw new Error('later')
  })
  const client = await Client.connect(t, port)
  await client.send(request('GET /')).waitForText('answered')
  assert.deepEqual([errors.length, client.text.includes('500')], [1, false])
})

test('onClose: all listeners run when the client disconnects, although uWS allows one onAborted', async (t) => {
  const called: string[] = []
  let kept: Responder | undefined
  const { port, errors } = await serve(t, (_, responder) => {
    kept = responder
    responder.onClose(() => called.push('first'))
    responder.onClose(() => {
      throw new Error('a listener')
    })
    responder.onClose(() => called.push('last'))
  })
  const client = await Client.connect(t, port)
  client.send(request('GET /'))
  await pollUntil(() => kept !== undefined, 'the handler runs')
  assert.equal(kept?.isDone, false)
  client.socket.destroy()
  await pollUntil(() => called.length === 2, 'the listeners are called')
  kept?.onClose(() => called.push('too late'))
  await pollUntil(() => called.length === 3, 'a late listener is called')
  assert.deepEqual([called, kept?.isDone, errors.length], [['first', 'last', 'too late'], true, 1])
})

test('onClose does not run for a client that received its answer', async (t) => {
  const called: string[] = []
  const { port, server } = await serve(t, (seen, responder) => {
    responder.onClose(() => called.push(seen.path))
    if (seen.path !== '/waits') responder.send({ ...OK_HEAD, body: 'end' })
  })
  const client = await Client.connect(t, port)
  await client.send(request('GET /answered')).waitForText('end')
  client.send(request('GET /waits'))
  client.socket.end()
  await pollUntil(() => called.length > 0, 'the other one is called')
  server.close()
  assert.deepEqual(called, ['/waits'])
})

test('a second answer, or one after a disconnect, has no effect', async (t) => {
  const client = await Client.connect(t, serverProcess.port)
  await client.send(request('GET /late?1')).waitForText('late')
  const gone = await Client.connect(t, serverProcess.port)
  gone.send(request('GET /late?30'))
  gone.socket.end()
  const next = await Client.connect(t, serverProcess.port)
  await next.send(request('GET /late?60')).waitForText('late')
  assert.deepEqual([serverProcess.exited(), client.text.includes('again')], [false, false])
})

test('an answer after await is one packet, without a uWS warning', async (t) => {
  const client = await Client.connect(t, serverProcess.port)
  await client.send(request('GET /late?5')).waitForText('late')
  assert.equal(client.arrivals.length, 1)
  assert.equal(serverProcess.stderr(), '')
})

test('control characters in headers are rejected', async (t) => {
  const bad: [string, string][] = [
    ['x-a', 'a\r\nset-cookie: b=c'],
    ['x-a', 'a\nb'],
    ['x-a', 'a\0'],
    ['x-a: b\r\nx-c', 'd'],
    ['', 'a'],
  ]
  for (const header of bad) {
    const { port, errors } = await serve(t, (_, responder) =>
      responder.send({ status: 200, headers: [header] }),
    )
    const client = await Client.connect(t, port)
    await client.send(request('GET /')).waitForText('Internal error')
    assert.deepEqual([errors.length, client.text.includes('200 OK')], [1, false])
    assert.throws(() => new HeaderBlock([header]))
  }
})

test('constant and custom headers are sent in order, with tabs and non-ASCII text unchanged', async (t) => {
  const block = new HeaderBlock([['x-constant', '1']])
  const { port } = await serve(t, (_, responder) =>
    responder.send({
      status: 201,
      block,
      headers: [
        ['x-own', 'a\tb'],
        ['x-far', 'ü'],
      ],
      body: 'end',
    }),
  )
  const client = await Client.connect(t, port)
  await client.send(request('GET /')).waitForText('end')
  const text = Buffer.concat(client.arrivals).toString()
  assert.match(text, /^HTTP\/1.1 201 Created\r\nx-constant: 1\r\nx-own: a\tb\r\nx-far: ü\r\n/)
})

test('HEAD has the length of the body without the body, and the connection stays open', async (t) => {
  const { port } = await serve(t, (seen, responder) =>
    responder.send({ ...OK_HEAD, body: 'öne', isHead: seen.method === 'HEAD' }),
  )
  const client = await Client.connect(t, port)
  await client.send(request('HEAD /')).waitForText('\r\n\r\n')
  assert.match(client.text, /Content-Length: 4\r\n/)
  await client.send(request('GET /')).waitForText('ne')
  assert.equal(client.text.match(/Content-Length: 4/g)?.length, 2)
})

test('204 and 304 have no body or length, and the connection stays open', async (t) => {
  const { port } = await serve(t, (seen, responder) =>
    responder.send({ status: Number(seen.path.slice(1)), headers: [] }),
  )
  const client = await Client.connect(t, port)
  await client.send(request('GET /204')).waitForText('204 No Content')
  await client.send(request('GET /304')).waitForText('304 Not Modified')
  assert.doesNotMatch(client.text, /Content-Length/)
  await client.send(request('GET /200')).waitForText('Content-Length: 0')
})

test('an answer of 10 MB arrives completely', async (t) => {
  const text = 'x'.repeat(10_000_000)
  const { port } = await serve(t, (_, responder) => responder.send({ ...OK_HEAD, body: text }))
  const answer = await fetch(`http://127.0.0.1:${port}/`)
  assert.equal(await answer.text(), text)
})

test('a huge answer is sent at the pace of a slow client, with constant memory', async (t) => {
  const client = await Client.connect(t, serverProcess.port)
  client.socket.pause()
  client.send(request('GET /pieces'))
  const before = await readResidentMiB(serverProcess.pid)
  let max = before
  let size = 0
  client.socket.removeAllListeners('data')
  client.socket.on('data', (data) => {
    size += data.length
  })
  while (size < 400 * 256 * 1024) {
    client.socket.resume()
    await new Promise((resolve) => setTimeout(resolve, 2))
    client.socket.pause()
    max = Math.max(max, await readResidentMiB(serverProcess.pid))
  }
  assert.ok(max - before < 20, `100 MiB of answer added ${(max - before).toFixed(1)} MiB`)
})

test('pieces arrive in order, with the announced length', async (t) => {
  const { port } = await serve(t, async (_, responder) => {
    const body = responder.beginBody({ status: 200, headers: [['content-type', 'text/plain']] }, 6)
    for (const part of ['ab', '', 'cd', 'ef']) await body.write(Buffer.from(part))
  })
  const answer = await fetch(`http://127.0.0.1:${port}/`)
  assert.deepEqual([answer.headers.get('content-length'), await answer.text()], ['6', 'abcdef'])
  const { port: other } = await serve(t, (_, responder) => void responder.beginBody(OK_HEAD, 0))
  assert.equal(await (await fetch(`http://127.0.0.1:${other}/`)).text(), '')
})

test('a disconnect rejects the waiting piece and later ones', async (t) => {
  const codes: string[] = []
  let body: BodyWriter | undefined
  const { port } = await serve(t, async (_, responder) => {
    body = responder.beginBody(OK_HEAD, 2 ** 30)
    await body.write(new Uint8Array(2 ** 26)).catch((error) => codes.push(error.code))
    await body.write(new Uint8Array(1)).catch((error) => codes.push(error.code))
  })
  const client = await Client.connect(t, port)
  client.socket.pause()
  client.send(request('GET /'))
  await pollUntil(() => body !== undefined, 'the body is begun')
  client.socket.destroy()
  await pollUntil(() => codes.length === 2, 'both writes fail')
  assert.deepEqual(codes, ['request.incomplete', 'request.incomplete'])
})

test('a failing body cuts the connection, so that the client notices', async (t) => {
  const { port } = await serve(t, async (_, responder) => {
    await responder.beginBody(OK_HEAD, 100).write(new Uint8Array(50))
    throw new Error('half-way')
  })
  const client = await Client.connect(t, port)
  await client.send(request('GET /')).waitForClose()
  assert.match(client.text, /Content-Length: 100/)
})

test('more bytes than announced are rejected', async (t) => {
  const { port, errors } = await serve(t, (_, responder) =>
    responder.beginBody(OK_HEAD, 3).write(new Uint8Array(4)),
  )
  const client = await Client.connect(t, port)
  await client.send(request('GET /')).waitForClose()
  assert.match(String(errors), /exceeds its Content-Length of 3 bytes/)
})
