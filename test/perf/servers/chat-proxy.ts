import { Agent, createServer, request as send } from 'node:http'
import type { AddressInfo } from 'node:net'

/** The reference for chat: forwards a question to the provider, and the pieces of the answer back. */

const target = new URL(process.env.TARGET!)
const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY })

const server = createServer((request, response) => {
  const onward = send(
    {
      host: target.hostname,
      port: target.port,
      path: '/v1/chat/completions',
      method: 'POST',
      agent,
      headers: { 'content-type': 'application/json', authorization: 'Bearer x' },
    },
    (answer) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      answer.pipe(response)
    },
  )
  onward.on('error', () => response.destroy())
  request.pipe(onward)
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => process.send!({ port: (server.address() as AddressInfo).port }))
process.on('disconnect', () => process.exit())
process.on('SIGTERM', () => process.exit())
