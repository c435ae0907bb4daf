import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { test } from 'node:test'
import { Client, type SentRequest } from '../fuzz/client.ts'
import { stopAfterFile } from '../services.ts'

const OK_RESPONSE = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'
const operation = { method: 'GET', path: '/', parameters: [], responses: {} }
const sent: SentRequest = { operation, method: 'GET', target: '/', headers: {}, caller: 'nobody', body: null }

/**
 * Creates a client of a server that answers `good` requests per connection, and then sends `instead` and closes the
 * connection.
 */
async function createClient(good: () => number, instead = ''): Promise<Client> {
  const server = net.createServer((socket) => {
    let left = good()
    socket.on('error', () => {})
    socket.on('data', () => (left-- > 0 ? socket.write(OK_RESPONSE) : socket.end(instead)))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const client = new Client((server.address() as net.AddressInfo).port, {})
  stopAfterFile(async () => {
    client.close()
    server.close()
  })
  return client
}

test('a request on a reused connection that closes before an answer is retried once and counted', async () => {
  const client = await createClient(() => 1)
  for (const repeated of [0, 1])
    assert.deepEqual([(await client.send(sent)).status, client.retries], [200, repeated])
})

test('a request on a new connection that closes before an answer fails', async () => {
  const never = await createClient(() => 0)
  await assert.rejects(never.send(sent), { code: 'ECONNRESET' })
  assert.equal(never.retries, 0)
  let connections = 0
  const once = await createClient(() => (connections++ === 0 ? 1 : 0))
  await once.send(sent)
  await assert.rejects(once.send(sent), { code: 'ECONNRESET' })
  assert.equal(once.retries, 1)
})

test('a truncated answer fails its request', async () => {
  for (const part of ['HTTP/1.1 2', OK_RESPONSE.slice(0, -1)]) {
    const client = await createClient(() => 1, part)
    await client.send(sent)
    await assert.rejects(client.send(sent), { code: 'ECONNRESET' })
    assert.equal(client.retries, 0)
  }
})
