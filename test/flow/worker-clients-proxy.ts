import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { after } from 'node:test'

/** A proxy that loses answers. */
export interface LossyProxy {
  readonly url: string
  /** Paths of the requests whose answers were lost. */
  readonly lost: readonly string[]
}

/** Starts a proxy that forwards requests to `base`, and loses the first answer for each of the given ends of paths. */
export async function startLossyProxy(base: string, ends: readonly string[]): Promise<LossyProxy> {
  const lost: string[] = []
  const left = new Set(ends)
  // A request fails if its client leaves.
  const server = http.createServer((request, response) => {
    forward(request, response).catch(() => response.destroy())
  })
  const forward = async (request: http.IncomingMessage, response: http.ServerResponse): Promise<void> => {
    const { method, headers, url: path = '' } = request
    const body = await buffer(request)
    const outgoing = http.request(`${base}${path}`, { method, headers })
    outgoing.on('error', () => {})
    response.on('close', () => outgoing.destroy())
    outgoing.end(body)
    const [answer] = (await once(outgoing, 'response')) as [http.IncomingMessage]
    const bytes = await buffer(answer)
    const end = [...left].find((one) => path.endsWith(one))
    if (end !== undefined && left.delete(end)) {
      lost.push(path)
      response.destroy()
    } else response.writeHead(answer.statusCode!, answer.headers).end(bytes)
  }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  after(() => server.closeAllConnections())
  after(() => server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, lost }
}
