import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/**
 * A provider with fixed delays: each piece of an answer says when the request came and when the piece left, in ms since
 * the epoch, so that whoever gets it knows what it has added.
 */

const firstMs = Number(process.env.FIRST_MS)
const betweenMs = Number(process.env.BETWEEN_MS)
const pieces = Number(process.env.PIECES)

const now = (): number => performance.timeOrigin + performance.now()
const chunk = (delta: object, finish: string | null, more: object = {}): string =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }], ...more })}\n\n`

const server = createServer((request, response) => {
  const cameAt = now()
  request.resume()
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.flushHeaders()
  let sent = 0
  const next = (): void => {
    if (response.destroyed) return
    response.write(chunk({ content: `${cameAt.toFixed(2)}/${now().toFixed(2)} ` }, null))
    if (++sent < pieces) return void setTimeout(next, betweenMs)
    const usage = { prompt_tokens: 10, completion_tokens: pieces, total_tokens: 10 + pieces }
    response.end(`${chunk({}, 'stop', { usage })}data: [DONE]\n\n`)
  }
  setTimeout(next, firstMs)
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => process.send!({ port: (server.address() as AddressInfo).port }))
process.on('disconnect', () => process.exit())
process.on('SIGTERM', () => process.exit())
