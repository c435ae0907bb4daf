import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { readdirSync, readlinkSync } from 'node:fs'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { Handler, Responder } from '../../edge/http/server.ts'
import { statusOf } from '../../edge/pipeline/answer/statuses.ts'
import { Failure } from '../../sql/errors.ts'
import { Client, pollUntil, request, serve } from './fixtures/raw.ts'

const MAX_BYTES = 1024 * 1024

function reply(responder: Responder, body: string, status = 200): void {
  responder.send({ status, headers: [], body: `${body}|` })
}

/** Reads the body and answers with its text or the error code. */
const echo: Handler = async (incoming, responder) => {
  try {
    reply(responder, Buffer.from(await incoming.body.readBytes(MAX_BYTES)).toString('latin1'))
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    reply(responder, error.code, statusOf(error.code))
  }
}

const LARGE_BODY_HEADERS = { 'content-length': String(64 * MAX_BYTES) }

test('a body requested after await is complete', async (t) => {
  const { port } = await serve(t, async (incoming, responder) => {
    await delay(50)
    await echo(incoming, responder)
  })
  const client = await Client.connect(t, port)
  await client.send(request('POST /', {}, 'all of it')).waitForText('all of it|')
})

test('stored chunks are copies that stay valid', async (t) => {
  const chunks: Uint8Array[] = []
  const { port } = await serve(t, async (incoming, responder) => {
    await incoming.body.streamTo((chunk) => {
      chunks.push(chunk)
    }, MAX_BYTES)
    reply(responder, chunks.map((chunk) => Buffer.from(chunk).toString()).join('+'))
  })
  const client = await Client.connect(t, port)
  client.send(request('POST /', { 'content-length': '6' }))
  for (const part of ['ab', 'cd', 'ef']) {
    const before = chunks.length
    client.send(part)
    await pollUntil(() => chunks.length > before, 'the part arrives')
  }
  await client.waitForText('ab+cd+ef|')
})

test('chunks arrive in order, and a slow sink gets one at a time', async (t) => {
  let atOnce = 0
  let max = 0
  const { port } = await serve(t, async (incoming, responder) => {
    const parts: Uint8Array[] = []
    const size = await incoming.body.streamTo(async (chunk) => {
      max = Math.max(max, ++atOnce)
      await delay(1)
      parts.push(chunk)
      atOnce--
    }, 64 * MAX_BYTES)
    const whole = Buffer.concat(parts)
    const ordered = Array.from({ length: size / 4 }, (_, i) => whole.readUInt32LE(i * 4) === i).every(Boolean)
    reply(responder, `${size} ${ordered}`)
  })
  const body = Buffer.from(Uint32Array.from({ length: 2 * MAX_BYTES }, (_, i) => i).buffer)
  const client = await Client.connect(t, port)
  client.send(request('POST /', { 'content-length': String(body.length) }))
  client.socket.write(body)
  await client.waitForText(`${body.length} true|`)
  assert.equal(max, 1)
})

test('reads a chunked body, an empty one and none', async (t) => {
  const { port } = await serve(t, echo)
  const client = await Client.connect(t, port)
  client.send(
    `${request('POST /', { 'transfer-encoding': 'chunked' })}5\r\nhello\r\n6\r\n there\r\n0\r\n\r\n`,
  )
  await client.waitForText('hello there|')
  await client.send(request('POST /', { 'content-length': '0' })).waitForText('\r\n\r\n|')
  await client.send(request('DELETE /')).waitForText('\r\n\r\n|HTTP/1.1 200 OK')
})

test('a Content-Length over the limit is rejected immediately, and the client gets the 413', async (t) => {
  const { port } = await serve(t, echo)
  const client = await Client.connect(t, port)
  // The client sends none of the body, so the server cannot have waited for it.
  await client.send(request('POST /', LARGE_BODY_HEADERS)).waitForText('request.too_large|')
  assert.match(
    client.text,
    /^HTTP\/1.1 413 Payload Too Large\r\nContent-Length: 18\r\nConnection: close\r\n\r\n/,
  )
})

test('a client that sends everything before it reads gets an early answer without a reset', async (t) => {
  const { port } = await serve(t, (incoming, responder) =>
    incoming.method === 'GET' ? reply(responder, 'request.too_large', 413) : echo(incoming, responder),
  )
  for (const [line, connection] of [
    ['POST /', 'keep-alive'],
    ['POST /', 'close'],
    ['GET /', 'close'],
  ] as const) {
    const client = await Client.connect(t, port)
    let failed: Error | undefined
    client.socket.on('error', (error) => {
      failed = error
    })
    client.socket.pause()
    client.send(request(line, { ...LARGE_BODY_HEADERS, connection }))
    const piece = Buffer.alloc(MAX_BYTES)
    for (let i = 0; i < 64; i++) await new Promise((resolve) => client.socket.write(piece, resolve))
    client.socket.resume()
    await client.waitForText('request.too_large|')
    await client.waitForClose()
    assert.equal(failed, undefined, `${line} ${connection}`)
  }
})

test("Node's fetch gets the 413", async (t) => {
  const { port } = await serve(t, echo)
  const answer = await fetch(`http://127.0.0.1:${port}/`, {
    method: 'POST',
    body: Buffer.alloc(8 * MAX_BYTES),
  })
  assert.deepEqual([answer.status, await answer.text()], [413, 'request.too_large|'])
})

test('chunks over the limit are rejected during the upload, and the client gets the 413', async (t) => {
  const { port } = await serve(t, echo)
  const client = await Client.connect(t, port)
  client.send(request('POST /', { 'transfer-encoding': 'chunked' }))
  const piece = `${MAX_BYTES.toString(16)}\r\n${'x'.repeat(MAX_BYTES)}\r\n`
  await client.send(piece + piece).waitForText('413')
})

test('a body of exactly the limit is accepted', async (t) => {
  const { port } = await serve(t, echo)
  const client = await Client.connect(t, port)
  await client.send(request('POST /', {}, 'x'.repeat(MAX_BYTES))).waitForText('x|')
})

test('a small unread body keeps its connection open', async (t) => {
  let answered = 0
  const { port } = await serve(t, (_, responder) => {
    reply(responder, 'refused', 401)
    answered++
  })
  const client = await Client.connect(t, port)
  await client.send(request('POST /', {}, 'x'.repeat(1000))).waitForText('refused|')
  client.arrivals.length = 0
  client.send(request('POST /', { 'content-length': '1000' }))
  await pollUntil(() => answered === 2, 'the answer precedes the body')
  await client.send('x'.repeat(1000)).waitForText('refused|')
  assert.equal(client.closed, false)
})

test('a large unread body closes the connection once it has arrived', async (t) => {
  const { port } = await serve(t, (_, responder) => reply(responder, 'refused', 401))
  const client = await Client.connect(t, port)
  await client.send(request('POST /', { 'content-length': String(MAX_BYTES) })).waitForText('refused|')
  assert.match(client.text, /Connection: close/)
  assert.equal(client.closed, false)
  await client.send('x'.repeat(MAX_BYTES)).waitForClose()
})

test('an answer before a large body arrives, even when part of the body comes with the head', async (t) => {
  const { port } = await serve(t, (_, responder) => reply(responder, 'refused', 401))
  const sized = request('POST /', {}, 'x'.repeat(128 * 1024))
  const chunked = `${request('POST /', { 'transfer-encoding': 'chunked' })}3\r\nabc\r\n`
  for (const text of [
    sized + request('GET /'),
    `${sized}\0\r\n\r\n`,
    `${chunked}0\r\n\r\n${request('GET /')}`,
    `${chunked}x`,
  ]) {
    const client = await Client.connect(t, port)
    await client.send(text).waitForClose()
    assert.match(client.text, /^HTTP\/1.1 401 .*\r\nConnection: close\r\n\r\nrefused\|/s)
  }
})

test('a body faster than its reader goes through a file, complete and in order', async (t) => {
  const before = countTempFiles()
  let max = 0
  const { port } = await serve(t, async (incoming, responder) => {
    const hash = createHash('sha256')
    await incoming.body.streamTo(async (chunk) => {
      hash.update(chunk)
      max = Math.max(max, countTempFiles())
      await new Promise(setImmediate)
    }, 64 * MAX_BYTES)
    reply(responder, hash.digest('hex'))
  })
  const body = randomBytes(48 * MAX_BYTES)
  const client = await Client.connect(t, port)
  client.send(request('POST /', { 'content-length': String(body.length) }))
  client.socket.write(body)
  await client.waitForText(`${createHash('sha256').update(body).digest('hex')}|`)
  assert.equal(countTempFiles(), before)
  t.diagnostic(`${max - before} file`)
})

/** Counts the open files of this process that are already unlinked. */
function countTempFiles(): number {
  return readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).includes('/millrace-body-')
    } catch {
      return false
    }
  }).length
}

test('an unread body is held back, and is complete when read later', async (t) => {
  let read: (() => void) | undefined
  const { port } = await serve(t, async (incoming, responder) => {
    if (incoming.method === 'GET') return reply(responder, 'there')
    await new Promise<void>((resolve) => {
      read = resolve
    })
    const size = await incoming.body.streamTo(() => {}, 64 * MAX_BYTES)
    reply(responder, String(size))
  })
  const client = await Client.connect(t, port)
  const other = await Client.connect(t, port)
  client.send(request('POST /', { 'content-length': String(32 * MAX_BYTES) }))
  const piece = Buffer.alloc(MAX_BYTES / 16)
  let sent = 0
  const send = (): void => {
    if (sent < 32 * MAX_BYTES)
      client.socket.write(piece, () => {
        sent += piece.length
        send()
      })
  }
  send()
  // The server must still serve other clients and read no more of this body.
  for (let rounds = 0; rounds < 20; ) {
    const before = sent
    const answers = other.arrivals.length
    other.send(request('GET /'))
    await pollUntil(() => other.arrivals.length > answers, 'the other is answered')
    rounds = sent === before ? rounds + 1 : 0
  }
  assert.ok(sent < 16 * MAX_BYTES, 'most of it waits at the client')
  read?.()
  await client.waitForText(`${32 * MAX_BYTES}|`)
})

test('a disconnect rejects the read', async (t) => {
  let code = ''
  let reading = false
  const { port } = await serve(t, async (incoming) => {
    reading = true
    await incoming.body.readBytes(MAX_BYTES).catch((error: Failure) => {
      code = error.code
    })
  })
  const client = await Client.connect(t, port)
  client.send(`${request('POST /', { 'content-length': '100' })}some`)
  await pollUntil(() => reading, 'the handler reads')
  client.socket.destroy()
  await pollUntil(() => code !== '', 'the reading fails')
  assert.equal(code, 'request.incomplete')
})

test('an error in a sink ends the read with that error, and the client gets an answer', async (t) => {
  const { port, errors } = await serve(t, async (incoming) => {
    await incoming.body.streamTo(() => {
      throw new Error('the disk is full')
    }, 64 * MAX_BYTES)
  })
  const client = await Client.connect(t, port)
  await client
    .send(`${request('POST /', LARGE_BODY_HEADERS)}some`)
    .waitForText('{"detail":"Internal error","code":"internal"}')
  assert.match(String(errors), /the disk is full/)
})

test('a body can be read once', async (t) => {
  const { port, errors } = await serve(t, async (incoming, responder) => {
    await echo(incoming, responder)
    await incoming.body.readBytes(MAX_BYTES)
  })
  const client = await Client.connect(t, port)
  await client.send(request('POST /', {}, 'once')).waitForText('once|')
  await pollUntil(() => errors.length === 1, 'the second reading fails')
})

test('an invalid Content-Length is 400', async (t) => {
  const { port } = await serve(t, echo)
  const client = await Client.connect(t, port)
  await client.send(`${request('POST /', { 'content-length': '12x' })}some`).waitForText('400 Bad Request')
})
