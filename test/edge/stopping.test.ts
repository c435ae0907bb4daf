import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { test } from 'node:test'
import { z } from 'zod'
import { answerCompactJson, area, route } from '../../edge/pipeline/route.ts'
import { until } from '../until.ts'
import { type Api, startEdgeAndDatabase } from './harness.ts'

/** A stopping edge must complete the answers that it owes to its clients. */

// Larger than the kernel's send buffer.
const LARGE_TEXT = JSON.stringify('x'.repeat(32 * 1024 * 1024))

/** Starts an edge that sends a large answer on demand, and a client that requests the answer without reading it. */
async function requestLargeAnswer(lingers: boolean) {
  const asking = Promise.withResolvers<void>()
  const answering = Promise.withResolvers<void>()
  const large = area('system', '', { auth: 'public' }, [
    route({
      method: 'get',
      path: '/large',
      summary: 'Large',
      response: z.string(),
      handle: async () => {
        asking.resolve()
        await answering.promise
        return answerCompactJson<string>(LARGE_TEXT)
      },
    }),
  ])
  const { api } = await startEdgeAndDatabase({ areas: [large], lingers })
  const socket = net.connect(api.port, '127.0.0.1').on('error', () => {})
  await once(socket, 'connect')
  socket.pause()
  socket.write('GET /large HTTP/1.1\r\nhost: localhost\r\n\r\n')
  await asking.promise
  return { api, socket, answer: answering.resolve }
}

/** Reads a whole answer. Like a client that obeys `Connection: close`, closes the connection after it. */
async function readWhole(socket: net.Socket): Promise<{ head: string; bytes: number }> {
  const parts: Buffer[] = []
  let bytes = 0
  let head: string | undefined
  socket.on('data', (data: Buffer) => {
    parts.push(data)
    bytes += data.length
    head ??= Buffer.concat(parts).toString('latin1').split('\r\n\r\n')[0]!
    if (bytes >= head.length + 4 + LARGE_TEXT.length) socket.end()
  })
  await once(socket.resume(), 'close')
  return { head: head!, bytes: bytes - head!.length - 4 }
}

const refusesConnections = (api: Api): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = net.connect(api.port, '127.0.0.1')
    socket.on('error', () => resolve(true)).on('connect', () => resolve(false))
    socket.on('connect', () => socket.destroy())
  })

for (const lingers of [false, true]) {
  test(`an unread answer arrives completely when the edge stops (lingers: ${lingers})`, async () => {
    const { api, socket, answer } = await requestLargeAnswer(lingers)
    answer()
    await until("the kernel's buffer is full", () => socket.bytesRead > 0 || socket.readableLength > 0)
    const stopped = api.serving.stop()
    await until('the edge rejects connections', () => refusesConnections(api))
    const { head, bytes } = await readWhole(socket)
    assert.equal(bytes, LARGE_TEXT.length)
    assert.doesNotMatch(head, /connection: close/i)
    await stopped
  })

  test(`an answer during the stop arrives completely and closes the connection (lingers: ${lingers})`, async () => {
    const { api, socket, answer } = await requestLargeAnswer(lingers)
    const stopped = api.serving.stop()
    await until('the edge rejects connections', () => refusesConnections(api))
    answer()
    const { head, bytes } = await readWhole(socket)
    assert.equal(bytes, LARGE_TEXT.length)
    assert.match(head, /\r\nConnection: close(\r\n|$)/)
    await stopped
  })
}
