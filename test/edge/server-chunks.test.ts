import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import net from 'node:net'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { createServer } from '../../edge/http/server.ts'
import type { ChunkWriter } from '../../edge/http/types.ts'
import { until } from '../until.ts'

/** Bodies of unknown length must arrive at the client's pace, and be cut off if they cannot be completed. */

type WriteBody = (writer: ChunkWriter) => Promise<void>
const routes = new Map<string, WriteBody>()
const outcomes = new Map<string, unknown>()
const server = createServer(
  async (request, responder) => {
    const writer = responder.beginChunks({ status: 200, headers: [['content-type', 'text/plain']] })
    await routes.get(request.path)!(writer).then(
      () => outcomes.set(request.path, 'written'),
      (error) => outcomes.set(request.path, error.code ?? error.message),
    )
  },
  { onError: () => {} },
)
const { port } = await server.listen({ host: '127.0.0.1', port: 0, exclusive: true })
after(() => server.close())

let count = 0
const addRoute = (write: WriteBody): string => {
  const path = `/${++count}`
  routes.set(path, write)
  return path
}
const get = async (path: string): Promise<Buffer> =>
  Buffer.from(await (await fetch(`http://127.0.0.1:${port}${path}`)).arrayBuffer())

test('pieces of every size arrive completely and in order', async () => {
  for (const sizes of [
    [],
    [0],
    [1],
    [1024],
    [1025],
    [0, 1, 0],
    [16, 16, 16],
    [100_000, 1, 100_000, 3],
    Array(500).fill(7),
  ] as const) {
    const pieces = sizes.map((size) => randomBytes(size))
    const body = await get(
      addRoute(async (writer) => {
        for (const piece of pieces) await writer.write(piece)
        writer.end()
      }),
    )
    assert.ok(body.equals(Buffer.concat(pieces)), `${sizes.length} pieces`)
  }
})

test('a piece may be reused once written', async () => {
  const body = await get(
    addRoute(async (writer) => {
      const piece = Buffer.alloc(3000)
      for (let i = 0; i < 50; i++) await writer.write(piece.fill(i))
      writer.end()
    }),
  )
  for (let i = 0; i < 50; i++) assert.ok(body.subarray(i * 3000, (i + 1) * 3000).every((byte) => byte === i))
})

test('a slow client slows the writer and gets everything', async () => {
  const total = 400
  const piece = randomBytes(65_536)
  let written = 0
  const path = addRoute(async (writer) => {
    for (; written < total; written++) await writer.write(piece)
    writer.end()
  })
  const socket = net.connect(port, '127.0.0.1')
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
  socket.pause()
  // Count event-loop turns in which a piece could be written. Wall time would include stalls of the process.
  let [held, turns] = [0, 0]
  await until('no more pieces arrive', async () => {
    turns = written === held ? turns + 1 : 0
    held = written
    return held > 0 && turns === 10
  })
  assert.ok(held < total / 2, `${held} of ${total} pieces are on their way to one who does not read`)
  const hash = createHash('sha256')
  let body = Buffer.alloc(0)
  const received: Buffer[] = []
  for await (const chunk of socket) {
    received.push(chunk as Buffer)
    if (received.length % 50 === 0) await delay(1)
    if (String((chunk as Buffer).subarray(-5)) === '0\r\n\r\n') break
  }
  body = Buffer.concat(received)
  const start = body.indexOf('\r\n\r\n') + 4
  let size = 0
  for (let i = start; i < body.length; ) {
    const end = body.indexOf('\r\n', i)
    const length = Number.parseInt(body.toString('latin1', i, end), 16)
    if (length === 0) break
    hash.update(body.subarray(end + 2, end + 2 + length))
    size += length
    i = end + 2 + length + 2
  }
  assert.equal(size, total * piece.length)
  const expected = createHash('sha256')
  for (let i = 0; i < total; i++) expected.update(piece)
  assert.equal(hash.digest('hex'), expected.digest('hex'))
})

test('the writer learns of a disconnect', async () => {
  const path = addRoute(async (writer) => {
    for (;;) await writer.write(randomBytes(65_536))
  })
  const socket = net.connect(port, '127.0.0.1')
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
  await new Promise((resolve) => socket.once('data', resolve))
  socket.destroy()
  while (!outcomes.has(path)) await delay(5)
  assert.equal(outcomes.get(path), 'request.incomplete')
})

test('an aborted body cuts the connection, so that the client notices', async () => {
  const path = addRoute(async (writer) => {
    await writer.write(randomBytes(100_000))
    writer.abort()
    writer.abort()
  })
  await assert.rejects(get(path))
})

test('accepts one piece at a time', async () => {
  const path = addRoute(async (writer) => {
    const big = randomBytes(30_000_000)
    const first = writer.write(big)
    await assert.rejects(writer.write(big), /before the previous write finished/)
    await first
    writer.end()
    writer.end()
    await assert.rejects(writer.write(big))
  })
  assert.equal((await get(path)).length, 30_000_000)
})
