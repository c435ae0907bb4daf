import { Agent, request } from 'node:http'

export interface Answer {
  readonly status: number
  readonly text: string
}

/**
 * A client with one keep-alive connection. It retries only if a new connection was reset before the server read
 * anything. The kernel resets connections that arrive while a process stops listening (`edge/http/server.ts`).
 */
export interface KeepAliveClient {
  ask(method: string, path: string, body?: object | RawBody): Promise<Answer>
  close(): void
}

/** A request body that is not JSON. */
export class RawBody {
  readonly type: string
  readonly bytes: Buffer

  constructor(type: string, bytes: Buffer) {
    this.type = type
    this.bytes = bytes
  }
}

export function createKeepAliveClient(port: number, token: string): KeepAliveClient {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const ask = (method: string, path: string, body?: object | RawBody, isAgain = false): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const content = body === undefined || body instanceof RawBody ? body : jsonOf(body)
      const headers = {
        authorization: `Bearer ${token}`,
        ...(content && { 'content-type': content.type, 'content-length': content.bytes.length }),
      }
      let isAnswered = false
      const asked = request({ host: '127.0.0.1', port, agent, method, path, headers }, (response) => {
        isAnswered = true
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (chunk: string) => (text += chunk))
        response.on('end', () => resolve({ status: response.statusCode!, text }))
        response.on('error', reject)
      })
      asked.on('error', (error: NodeJS.ErrnoException) => {
        const isUnread = error.code === 'ECONNRESET' && !asked.reusedSocket && !isAnswered
        if (isUnread && !isAgain) resolve(ask(method, path, body, true))
        else reject(error)
      })
      asked.end(content?.bytes)
    })
  return { ask: (...what) => ask(...what), close: () => agent.destroy() }
}

const jsonOf = (body: object): RawBody => new RawBody('application/json', Buffer.from(JSON.stringify(body)))
