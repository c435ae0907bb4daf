import http from 'node:http'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import type { Operation } from './document.ts'

/** Sends requests byte by byte as generated, and prints them as curl commands. */

export interface Body {
  /** Builds the body on demand, because bodies may be large. */
  readonly bytes: () => Buffer
}

export interface SentRequest {
  readonly operation: Operation
  readonly method: string
  /** Path and query as sent. */
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  /** Name of the caller whose credential the request carries. */
  readonly caller: string
  readonly body: Body | null
}

export interface Answer {
  readonly status: number
  readonly headers: http.IncomingHttpHeaders
  /** Decompressed body; for a stream, the data received before it was closed. */
  readonly bytes: Buffer
}

// Time limit of a request. The service's own waits are shorter, and a slow machine needs far less.
const REQUEST_TIMEOUT_MS = 90_000
// Maximum time to read a stream, which is closed after its first event.
const STREAM_READ_MS = 100

/** Headers of each caller, by name. */
export type Credentials = Readonly<Record<string, Readonly<Record<string, string>>>>

export class Client {
  private readonly port: number
  private readonly credentials: Credentials
  private readonly agent = new http.Agent({ keepAlive: true, maxSockets: 32 })
  /** Number of requests that were retried because their connection closed before an answer. */
  retries = 0

  constructor(port: number, credentials: Credentials) {
    this.port = port
    this.credentials = credentials
  }

  get base(): string {
    return `http://127.0.0.1:${this.port}`
  }

  /**
   * Sends a request. If a reused connection closes before any answer, retries on a new one.
   *
   * @throws if the connection breaks or the answer is late.
   */
  send(sent: SentRequest): Promise<Answer> {
    return this.attempt(sent, this.agent)
  }

  private attempt(sent: SentRequest, agent: http.Agent | false): Promise<Answer> {
    const { method, target, headers, caller, body } = sent
    return new Promise((resolve, reject) => {
      const bytes = body?.bytes() ?? null
      const length = bytes === null ? {} : { 'content-length': String(bytes.length) }
      const request = http.request({
        ...{ host: '127.0.0.1', port: this.port, method, path: target, agent },
        headers: { ...headers, ...this.credentials[caller], ...length },
      })
      const limit = setTimeout(
        () => request.destroy(new Error(`no complete answer within ${REQUEST_TIMEOUT_MS} ms`)),
        REQUEST_TIMEOUT_MS,
      )
      let readBefore = 0
      request.on('socket', (socket) => {
        readBefore = socket.bytesRead
      })
      request.on('close', () => clearTimeout(limit))
      request.on('error', (error: NodeJS.ErrnoException) => {
        const isClosed = ['ECONNRESET', 'EPIPE'].includes(error.code ?? '')
        const isUnanswered = request.socket?.bytesRead === readBefore
        if (!isClosed || !request.reusedSocket || !isUnanswered) return reject(error)
        this.retries++
        resolve(this.attempt(sent, false))
      })
      request.on('response', (message) => {
        const chunks: Buffer[] = []
        const done = (): void =>
          resolve({
            status: message.statusCode!,
            headers: message.headers,
            bytes: decompress(message, Buffer.concat(chunks)),
          })
        message.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', reject)
        if (isStream(message) && method !== 'HEAD') {
          const leave = (): void => {
            done()
            request.destroy()
          }
          const soon = setTimeout(leave, STREAM_READ_MS)
          message.once('data', leave).on('close', () => clearTimeout(soon))
        } else message.on('end', done)
      })
      request.end(bytes ?? undefined)
    })
  }

  close(): void {
    this.agent.destroy()
  }
}

const isStream = (message: http.IncomingMessage): boolean =>
  message.statusCode === 200 && message.headers['content-type']?.startsWith('text/event-stream') === true

function decompress({ headers }: http.IncomingMessage, bytes: Buffer): Buffer {
  if (bytes.length === 0) return bytes
  if (headers['content-encoding'] === 'gzip') return gunzipSync(bytes)
  return headers['content-encoding'] === 'br' ? brotliDecompressSync(bytes) : bytes
}

const quoteShell = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
const MAX_SHOWN_LENGTH = 4000

const credentialOf: Readonly<Record<string, string>> = {
  nobody: '',
  cookie: ' -H "cookie: millrace_session=$owner"',
  stranger: ' -H "authorization: Bearer no.such.token"',
}

/**
 * The request as a curl command, with the base URL in `$base` and tokens in `$owner`, `$admin` and so on. Bytes that a shell would
 * change go through printf.
 */
export function curlOf({ method, target, headers, caller, body }: SentRequest): string {
  const credential = credentialOf[caller] ?? ` -H "authorization: Bearer $${caller}"`
  const parts = [`curl -i --path-as-is -g -X ${method} "$base"${quoteShell(target)}${credential}`]
  for (const [name, value] of Object.entries(headers)) parts.push(`-H ${quoteShell(`${name}: ${value}`)}`)
  if (body === null) return parts.join(' ')
  const bytes = body.bytes()
  const text = bytes.toString()
  const isText = Buffer.from(text).equals(bytes) && !/[^\P{Cc}\t\n\r]/u.test(text)
  if (bytes.length > MAX_SHOWN_LENGTH)
    return `${parts.join(' ')} --data-binary @- # ${bytes.length} bytes: ${abbreviate(text)}`
  if (isText) return `${parts.join(' ')} --data-binary ${quoteShell(text)}`
  const escaped = [...bytes].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('')
  return `printf ${quoteShell(escaped)} | ${parts.join(' ')} --data-binary @-`
}

const abbreviate = (text: string): string => JSON.stringify(`${text.slice(0, 300)} … ${text.slice(-100)}`)
