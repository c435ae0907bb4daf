import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/**
 * A provider with fixed delays. Each piece contains the times at which the request arrived and the piece was sent, in
 * ms since the epoch. From these the receiver computes the added latency.
 */

interface Pace {
  readonly FIRST_MS: number
  readonly BETWEEN_MS: number
  readonly PIECES: number
}
const { env } = process
let pace: Pace = {
  FIRST_MS: Number(env.FIRST_MS),
  BETWEEN_MS: Number(env.BETWEEN_MS),
  PIECES: Number(env.PIECES),
}
// A new pace applies to later requests.
process.on('message', (given: Pace) => {
  pace = given
  process.send!({})
})

const now = (): number => performance.timeOrigin + performance.now()
const formatChunk = (delta: object, finish: string | null, more: object = {}): string =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }], ...more })}\n\n`

const server = createServer((request, response) => {
  const cameAt = now()
  const { FIRST_MS: firstMs, BETWEEN_MS: betweenMs, PIECES: pieces } = pace
  request.resume()
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.flushHeaders()
  let sent = 0
  const next = (): void => {
    if (response.destroyed) return
    response.write(formatChunk({ content: `${cameAt.toFixed(2)}/${now().toFixed(2)} ` }, null))
    if (++sent < pieces) return void setTimeout(next, betweenMs)
    const usage = { prompt_tokens: 10, completion_tokens: pieces, total_tokens: 10 + pieces }
    response.end(`${formatChunk({}, 'stop', { usage })}data: [DONE]\n\n`)
  }
  setTimeout(next, firstMs)
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => process.send!({ port: (server.address() as AddressInfo).port }))
process.on('disconnect', () => process.exit())
process.on('SIGTERM', () => process.exit())
