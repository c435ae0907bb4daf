import http from 'node:http'

/** A JSON client of one edge with keep-alive connections. */
export interface JsonClient {
  /** Sends a request and returns the body of its answer. @throws if the status is not one of 2xx. */
  call<T>(method: 'POST' | 'PUT' | 'DELETE', path: string, body: object): Promise<T>
  close(): void
}

/** Opens a client that acts as the account of a token. */
export function createJsonClient(port: number, token: string): JsonClient {
  const agent = new http.Agent({ keepAlive: true, noDelay: true })
  const send = (method: string, path: string, text: string): Promise<{ status: number; text: string }> =>
    new Promise((resolve, reject) => {
      const headers = {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(text),
      }
      const request = http.request({ host: '127.0.0.1', port, method, path, headers, agent })
      request.on('error', reject).on('response', (response) => {
        const chunks: Buffer[] = []
        response
          .on('data', (chunk: Buffer) => chunks.push(chunk))
          .on('error', reject)
          .on('end', () => resolve({ status: response.statusCode!, text: Buffer.concat(chunks).toString() }))
      })
      request.end(text)
    })
  return {
    call: async (method, path, body) => {
      const { status, text } = await send(method, path, JSON.stringify(body))
      if (status >= 300) throw new Error(`${method} ${path} was answered ${status} ${text.slice(0, 600)}`)
      return JSON.parse(text === '' ? 'null' : text)
    },
    close: () => agent.destroy(),
  }
}
