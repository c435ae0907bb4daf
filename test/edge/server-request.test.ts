import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { after, test } from 'node:test'
import { type EdgeRequest, formatAddress, type Handler, HEADERS } from '../../edge/http/server.ts'
import { Client, request, serve, startChild } from './fixtures/raw.ts'

const serverProcess = await startChild({ after }, { env: { UWS_HTTP_MAX_HEADERS_SIZE: '4096' } })

/** Answers with the request's data in a later turn, when uWS's own request object is no longer valid. */
const echoRequest: Handler = async (seen, responder) => {
  await new Promise(setImmediate)
  const headers = Object.fromEntries(
    HEADERS.map((name) => [name, seen.header(name)]).filter(([, value]) => value),
  )
  const { method, path, query, address } = seen
  responder.send({
    status: 200,
    headers: [],
    body: `${JSON.stringify({ method, path, query, address, headers })}\n`,
  })
}

function parseSeen(client: Client): {
  method: string
  path: string
  query: string
  address: string
  headers: object
} {
  return JSON.parse(client.text.split('\r\n\r\n')[1] ?? '')
}

test('request data stays available after a return or await', async (t) => {
  const { port } = await serve(t, echoRequest)
  const client = await Client.connect(t, port)
  const headers = { Authorization: 'Bearer abc', Cookie: 'a=b; c=d', 'X-Not-Listed': 'no', Accept: '*/*' }
  await client.send(request('GET /a/b?x=1', headers)).waitForText('}\n')
  assert.deepEqual(parseSeen(client), {
    method: 'GET',
    path: '/a/b',
    query: 'x=1',
    address: '127.0.0.1',
    headers: { host: 'localhost', authorization: 'Bearer abc', cookie: 'a=b; c=d', accept: '*/*' },
  })
})

test('the first value of a repeated header applies', async (t) => {
  const { port } = await serve(t, echoRequest)
  const client = await Client.connect(t, port)
  const text = 'GET / HTTP/1.1\r\nhost: test\r\naccept: one\r\naccept: two\r\n\r\n'
  await client.send(text).waitForText('}\n')
  assert.deepEqual(parseSeen(client).headers, { host: 'test', accept: 'one' })
})

test('a request with ambiguous framing is 400, and the last on its connection', async (t) => {
  const seen: string[] = []
  const { port, errors } = await serve(t, ({ path, isMisframed }, responder) => {
    if (!isMisframed) seen.push(path)
    responder.send({ status: isMisframed ? 400 : 200, headers: [], body: 'answered' })
  })
  const chunked = '3\r\nabc\r\n0\r\n\r\n'
  const wrong: Readonly<Record<string, string>> = {
    'two lengths': 'host: a\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\nabcd',
    'a coding that is not chunked': `host: a\r\ntransfer-encoding: xchunked\r\n\r\n${chunked}`,
    'a coding before chunked': `host: a\r\ntransfer-encoding: gzip, chunked\r\n\r\n${chunked}`,
    'two codings': `host: a\r\ntransfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n${chunked}`,
    'no coding and a length': 'host: a\r\ntransfer-encoding:\r\ncontent-length: 3\r\n\r\nabc',
    'two hosts': 'host: a\r\nhost: b\r\n\r\n',
    'the same host twice': 'host: a\r\nhost: a\r\n\r\n',
  }
  // Bytes after the request, sent together with it or separately, must neither cut the answer off nor get an answer.
  const following = [
    '',
    'hello',
    request('GET /smuggled'),
    `x\r\n${request('GET /smuggled')}`,
    'x'.repeat(2_000_000),
  ]
  const answersOf = async (rest: string, next: string, isLate: boolean): Promise<string> => {
    const client = await Client.connect(t, port)
    client.send(`POST /wrong HTTP/1.1\r\n${rest}${isLate ? '' : next}`)
    await client.waitForText('\r\n\r\nanswered')
    if (isLate) client.send(next)
    await client.waitForClose()
    return client.text
  }
  const all = Object.entries(wrong).flatMap(([what, rest]) =>
    following.flatMap((next) =>
      [false, true].map(async (isLate) => {
        const answers = await answersOf(rest, next, isLate)
        assert.match(answers, /^HTTP\/1.1 400 .*\r\nConnection: close\r\n\r\nanswered/s, what)
        assert.equal(answers.match(/answered/g)?.length, 1, what)
      }),
    ),
  )
  await Promise.all(all)
  // uWS itself rejects these requests.
  for (const rest of [
    `host: a\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n${chunked}`,
    'accept: b\r\n\r\n',
  ]) {
    const client = await Client.connect(t, port)
    await client.send(`POST /wrong HTTP/1.1\r\n${rest}${request('GET /smuggled')}`).waitForClose()
    assert.match(client.text, /^HTTP\/1.1 400 /)
  }
  assert.deepEqual([seen, errors], [[], []])
  for (const rest of [
    'host: a\r\ncontent-length: 3\r\ncontent-length: 3\r\n\r\nabc',
    `host: a\r\ntransfer-encoding: Chunked\r\n\r\n${chunked}`,
    'host:\r\n\r\n',
  ]) {
    const client = await Client.connect(t, port)
    await client.send(`POST /right HTTP/1.1\r\n${rest}`).waitForText('answered')
  }
})

test('the query arrives raw and in order', async (t) => {
  const { port } = await serve(t, echoRequest)
  const client = await Client.connect(t, port)
  await client.send(request('GET /q?b=%20&a=1+2&b=%zz&=&a')).waitForText('}\n')
  assert.equal(parseSeen(client).query, 'b=%20&a=1+2&b=%zz&=&a')
})

test('a missing query is empty, as is one after a bare question mark', async (t) => {
  const { port } = await serve(t, echoRequest)
  for (const line of ['GET /q', 'GET /q?']) {
    const client = await Client.connect(t, port)
    await client.send(request(line)).waitForText('}\n')
    assert.equal(parseSeen(client).query, '')
  }
})

test('percent-encoded and malformed paths arrive raw', async (t) => {
  const { port } = await serve(t, echoRequest)
  for (const path of ['/a%20b', '/a%2Fb', '/a%zz%', '/%E4%B8', '//a//../b']) {
    const client = await Client.connect(t, port)
    await client.send(request(`GET ${path}`)).waitForText('}\n')
    assert.equal(parseSeen(client).path, path)
  }
})

test('every method and any path reach the handler', async (t) => {
  const { port } = await serve(t, echoRequest)
  for (const method of [
    'GET',
    'OPTIONS',
    'DELETE',
    'POST',
    'PUT',
    'PATCH',
    'TRACE',
    'PROPFIND',
    'propfind',
  ]) {
    const client = await Client.connect(t, port)
    await client.send(request(`${method} /anything`)).waitForText('}\n')
    assert.equal(parseSeen(client).method, method.toUpperCase())
  }
  const head = await Client.connect(t, port)
  await head.send(request('HEAD /anything')).waitForText('200 OK')
})

test('headers over the limit are rejected with 431', async (t) => {
  const large = request('GET /late', { cookie: 'x'.repeat(5000) })
  const refused = await Client.connect(t, serverProcess.port)
  await refused.send(large).waitForText('431')
  // The runner of the tests sets the limit of production.
  const { port } = await serve(t, echoRequest)
  const accepted = await Client.connect(t, port)
  await accepted.send(large).waitForText('late')
})

test('a pipelined request during a pending one closes the connection, and the server survives', async (t) => {
  const client = await Client.connect(t, serverProcess.port)
  await client.send(request('GET /late?50') + request('GET /late?1')).waitForClose()
  const next = await Client.connect(t, serverProcess.port)
  await next.send(request('GET /late?1')).waitForText('late')
  assert.equal(serverProcess.exited(), false)
})

test('an IPv4 address is dotted, even from an IPv6 socket', async (t) => {
  for (const host of ['127.0.0.1', '::']) {
    const { port } = await serve(t, echoRequest, host)
    const client = await Client.connect(t, port)
    await client.send(request('GET /')).waitForText('}\n')
    assert.equal(parseSeen(client).address, '127.0.0.1')
  }
})

test('an IPv6 address is compressed', async (t) => {
  const { port } = await serve(t, echoRequest, '::1')
  const client = await Client.connect(t, port, '::1')
  await client.send(request('GET /')).waitForText('}\n')
  assert.equal(parseSeen(client).address, '::1')
})

test('addresses follow RFC 5952', () => {
  const text = (hex: string) => formatAddress(Buffer.from(hex.replaceAll(' ', ''), 'hex'))
  assert.equal(text('0a 00 00 01'), '10.0.0.1')
  assert.equal(text('2001 0db8 0000 0000 0001 0000 0000 0001'), '2001:db8::1:0:0:1')
  assert.equal(text('2001 0db8 0000 0001 0001 0001 0001 0001'), '2001:db8:0:1:1:1:1:1')
  assert.equal(text('0000 0000 0000 0000 0000 0000 0000 0000'), '::')
  assert.equal(text('fe80 0000 0000 0000 0000 0000 0000 0000'), 'fe80::')
  assert.equal(text('0000 0000 0000 0000 0000 ffff c0a8 0001'), '192.168.0.1')
  assert.equal(text(''), '')
})

test('the address stays available after the answer if it was read before, and is empty otherwise', async (t) => {
  const kept: EdgeRequest[] = []
  const { port } = await serve(t, (seen, responder) => {
    if (seen.path === '/read') assert.equal(seen.address, '127.0.0.1')
    kept.push(seen)
    responder.send({ status: 200, headers: [], body: 'end' })
  })
  const client = await Client.connect(t, port)
  await client.send(request('GET /read') + request('GET /not')).waitForText('end')
  assert.deepEqual([kept[0]?.address, kept[1]?.address], ['127.0.0.1', ''])
})

test('uWebSockets.js has one importer', async () => {
  const root = new URL('../../', import.meta.url)
  const importers: string[] = []
  for (const folder of ['edge', 'sql', 'tasks', 'workers']) {
    for (const file of await readdir(new URL(folder, root), { recursive: true })) {
      if (!file.endsWith('.ts')) continue
      const text = await readFile(new URL(`${folder}/${file}`, root), 'utf8')
      if (/from 'uWebSockets\.js'/.test(text)) importers.push(`${folder}/${file}`)
    }
  }
  assert.deepEqual(importers, ['edge/http/server.ts'])
})
