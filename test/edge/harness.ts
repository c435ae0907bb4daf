import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import http from 'node:http'
import net from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { type ServingEdge, serveEdge } from '../../edge/edge.ts'
import { createPasswords, type Passwords } from '../../edge/passwords/passwords.ts'
import { UNDECLARED_MESSAGE } from '../../edge/pipeline/answer/refusals.ts'
import type { Area } from '../../edge/pipeline/route.ts'
import type { SecretKeys } from '../../tasks/platform/keys.ts'
import { createLog, type Log } from '../../tasks/platform/log.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { createTestDatabase, type TestDatabase } from '../database.ts'
import { listenOn, listenOnFreePort } from '../free-port.ts'
import { shareStoredKey, TEST_KEYS } from '../keys.ts'
import { shareByFiles, stopAfterFile } from '../services.ts'

/** Runs an edge in this process, with a client that exposes raw answers. */

export const SECRET = 'a secret for tests, long enough to be one'
export const PASSWORD = 'correct horse'
const agent = new http.Agent({ keepAlive: true })

export interface CallOptions {
  readonly headers?: http.OutgoingHttpHeaders
  readonly json?: unknown
  readonly form?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  /** A bearer token. */
  readonly token?: string
}

/** A raw answer, neither decoded nor redirected. */
export class Answered {
  readonly status: number
  readonly headers: http.IncomingHttpHeaders
  readonly bytes: Buffer

  constructor(message: http.IncomingMessage, bytes: Buffer) {
    this.status = message.statusCode!
    this.headers = message.headers
    this.bytes = bytes
  }

  get text(): string {
    return this.bytes.toString()
  }

  // biome-ignore lint/suspicious/noExplicitAny: tests access fields directly and fail if they are missing
  get json(): any {
    return JSON.parse(this.text)
  }

  get cookies(): readonly string[] {
    return this.headers['set-cookie'] ?? []
  }

  /** Returns the value of a cookie that the answer sets; `name` has no `__Host-` or `__Secure-` prefix. */
  cookie(name: string): string {
    const found = this.cookies.find((cookie) =>
      cookie.replace(/^__(Host|Secure)-/, '').startsWith(`${name}=`),
    )
    if (found === undefined) throw new Error(`No cookie ${name} in ${JSON.stringify(this.cookies)}`)
    return found.slice(found.indexOf('=') + 1, found.indexOf(';'))
  }
}

export interface Account {
  readonly id: number
  readonly role: string
  readonly email: string
  readonly token: string
  readonly refresh: string
}

const tokensOf = (answer: Answered) => ({
  token: answer.cookie('millrace_session'),
  refresh: answer.cookie('millrace_refresh'),
})

/** A running edge and helpers that call it. */
export class Api {
  readonly serving: ServingEdge
  readonly port: number

  constructor(serving: ServingEdge) {
    this.serving = serving
    this.port = serving.port
  }

  async call(method: string, path: string, options: CallOptions = {}): Promise<Answered> {
    // Let Node notice keep-alive connections that closed during a long computation.
    await setImmediate()
    const headers: http.OutgoingHttpHeaders = { ...options.headers }
    if (options.token !== undefined) headers.authorization = `Bearer ${options.token}`
    let { body } = options
    if (options.json !== undefined) {
      headers['content-type'] ??= 'application/json'
      body = JSON.stringify(options.json)
    } else if (options.form !== undefined) {
      headers['content-type'] ??= 'application/x-www-form-urlencoded'
      body = new URLSearchParams(options.form).toString()
    }
    // Node sets no Content-Length on a DELETE with a body.
    if (method === 'DELETE' && body !== undefined) headers['content-length'] = Buffer.byteLength(body)
    return new Promise((resolve, reject) => {
      const request = http.request({ host: '127.0.0.1', port: this.port, method, path, headers, agent })
      request.on('error', (error: NodeJS.ErrnoException) => {
        // The edge has closed an idle connection, which this process was too busy to notice.
        if (error.code === 'ECONNRESET' && request.reusedSocket) resolve(this.call(method, path, options))
        else reject(error)
      })
      request.on('response', (message) => {
        const chunks: Buffer[] = []
        message.on('error', reject).on('data', (chunk: Buffer) => chunks.push(chunk))
        message.on('end', () => resolve(new Answered(message, Buffer.concat(chunks))))
      })
      if (
        body !== undefined &&
        headers['content-length'] === undefined &&
        headers['transfer-encoding'] === undefined
      )
        request.setHeader('content-length', Buffer.byteLength(body))
      request.end(body)
    })
  }

  get(path: string, options?: CallOptions): Promise<Answered> {
    return this.call('GET', path, options)
  }

  post(path: string, options?: CallOptions): Promise<Answered> {
    return this.call('POST', path, options)
  }

  /** Registers an account and returns it with the tokens from its cookies. */
  async register(email: string, more: Readonly<Record<string, unknown>> = {}): Promise<Account> {
    const answer = await this.post('/api/v1/auth/register', {
      json: { email, password: PASSWORD, ...more },
    })
    if (answer.status !== 200) throw new Error(`register: ${answer.status} ${answer.text}`)
    return { ...answer.json, ...tokensOf(answer) }
  }

  /** Signs a registered account in again and returns it with the tokens of the new session. */
  async signIn<A extends Account>(account: A): Promise<A> {
    const form = { username: account.email, password: PASSWORD }
    const answer = await this.post('/api/v1/auth/token', { form })
    if (answer.status !== 200) throw new Error(`sign in: ${answer.status} ${answer.text}`)
    return { ...account, ...tokensOf(answer) }
  }

  async upload(token: string, bytes: string | Uint8Array, options: UploadOptions = {}): Promise<Answered> {
    const { body, type } = createMultipart(bytes, options)
    return this.post('/api/v1/documents', {
      token,
      body,
      headers: { 'content-type': type, ...options.headers },
    })
  }

  /** Sends text over a new socket. Returns all data until the server closes or sends nothing for `quietMs`. */
  raw(text: string, quietMs = 60): Promise<string> {
    return new Promise((resolve, reject) => {
      const socket = net.connect(this.port, '127.0.0.1', () => socket.write(text))
      let received = ''
      let quiet: NodeJS.Timeout | undefined
      const done = (): void => {
        clearTimeout(quiet)
        socket.destroy()
        resolve(received)
      }
      socket.setEncoding('latin1').on('error', reject).on('close', done)
      socket.on('data', (data) => {
        received += data
        clearTimeout(quiet)
        quiet = setTimeout(done, quietMs)
      })
    })
  }
}

export interface UploadOptions {
  readonly name?: string
  readonly type?: string
  readonly fields?: Readonly<Record<string, string>>
  readonly headers?: http.OutgoingHttpHeaders
}

/** Builds a multipart form with the fields before the file. */
export function createMultipart(
  bytes: string | Uint8Array,
  options: UploadOptions = {},
): { body: Buffer; type: string } {
  const { name = 'file.txt', type = 'application/octet-stream', fields = {} } = options
  const boundary = `----${randomUUID()}`
  const parts = Object.entries(fields).map(
    ([key, value]) => `--${boundary}\r\ncontent-disposition: form-data; name="${key}"\r\n\r\n${value}\r\n`,
  )
  const file = `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="${name}"\r\ncontent-type: ${type}\r\n\r\n`
  const body = Buffer.concat([
    Buffer.from(parts.join('') + file),
    Buffer.from(bytes),
    Buffer.from(`\r\n--${boundary}--\r\n`),
  ])
  return { body, type: `multipart/form-data; boundary=${boundary}` }
}

// All edges of the process share one hasher, whose cost is a hundredth of the real one.
const passwords = createPasswords({ cost: { memoryCost: 64, timeCost: 1 } })

export interface EdgeOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly areas?: readonly Area[]
  readonly log?: Log
  /** Default: those of the test's process. */
  readonly keys?: SecretKeys
  /** True if a stopping edge gives its clients time to move to another one. Default false. */
  readonly lingers?: boolean
  /** True if password hashing has its production cost. Default false. */
  readonly realPasswords?: boolean
  /** Wraps the password functions, for example to observe their calls. */
  readonly wrapPasswords?: (passwords: Passwords) => Passwords
}

const undeclared: unknown[] = []
// Writes nothing, and remembers refusals that the reference lacks.
const silentLog: Log = Object.create(await createLog('silent', 'edge'), {
  error: {
    value: (data: unknown, message: string) => message === UNDECLARED_MESSAGE && undeclared.push(data),
  },
})

// All requests of a test come from one address, so rate limits are off by default.
const NO_RATE_LIMITS = {
  RATE_LIMIT_LOGIN: '0',
  RATE_LIMIT_REGISTER: '0',
  RATE_LIMIT_PASSWORD_RESET: '0',
  RATE_LIMIT_INVITE: '0',
}

// Long read timeouts, so that the edge does not abort reads that are slow because the machine stalls.
const LONG_READ_TIMEOUTS = { READ_TIMEOUT_SECONDS: '60', LIST_TIMEOUT_SECONDS: '60' }
// Long, because the database seems silent while the machine stalls.
const HEALTH_TIMEOUT_MS = 30_000

/** Serves an edge on a free port until the end of the test file. Call this at the top of the file, not in a hook. */
export async function startEdge(url: string, options: EdgeOptions = {}): Promise<Api> {
  const given = {
    NODE_ENV: 'test',
    PORT: '0',
    SECRET_KEY: SECRET,
    ...NO_RATE_LIMITS,
    ...LONG_READ_TIMEOUTS,
    ...options.env,
  }
  const settings = parseSettings(given)
  const serving = await serveEdge(
    {
      settings,
      databaseUrl: url,
      directUrl: url,
      keys: options.keys ?? TEST_KEYS,
      log: options.log ?? silentLog,
      healthTimeoutMs: HEALTH_TIMEOUT_MS,
      ...(options.areas === undefined ? {} : { areas: options.areas }),
      ...(options.realPasswords ? {} : { passwords: options.wrapPasswords?.(passwords) ?? passwords }),
    },
    { exclusive: true, waitsForClients: options.lingers ?? false },
  )
  if (options.keys === undefined) await shareStoredKey(serving.edge.db)
  stopAfterFile(async () => {
    agent.destroy()
    await serving.stop()
    assert.deepEqual(undeclared.splice(0), [], UNDECLARED_MESSAGE)
  })
  return new Api(serving)
}

/** Creates a database and starts an edge on it. */
export async function startEdgeAndDatabase(options: EdgeOptions = {}): Promise<{ api: Api } & TestDatabase> {
  const database = await createTestDatabase()
  return { api: await startEdge(database.url, options), ...database }
}

const shareEdge = shareByFiles(async () => {
  const base = await startEdgeAndDatabase()
  const admin = await base.api.register(createEmail('admin'))
  return { ...base, admin }
})

/**
 * Returns an edge with default settings and its database, shared by all files of this process that call it. The
 * database has rows of other files, so use new accounts for isolation. `admin` is the only admin. Register other
 * accounts with `createEmail()`.
 */
export async function getSharedEdge() {
  const shared = await shareEdge()
  // The tests of a process can take longer than a session is recent.
  return { ...shared, admin: await shared.api.signIn(shared.admin) }
}

/** Returns an address that no other test file uses. */
export const createEmail = (name = 'user'): string => `${name}-${randomBytes(6).toString('hex')}@example.com`

/** A connection to PostgreSQL that tests can cut. Clients connect through `url`. */
export interface CuttableConnection {
  readonly url: string
  cut(): Promise<void>
  restore(): Promise<void>
}

/** Starts a proxy in front of the database's socket. */
export async function createCuttableConnection(url: string): Promise<CuttableConnection> {
  const [, user, folder, port0, name] = /^postgresql:\/\/([^@]+)@([^:]+):(\d+)\/(.+)$/.exec(url)!
  const file = `${decodeURIComponent(folder!)}/.s.PGSQL.${port0}`
  const open = new Set<net.Socket>()
  const server = net.createServer((socket) => {
    const upstream = net.connect(file)
    for (const [one, other] of [
      [socket, upstream],
      [upstream, socket],
    ] as const) {
      open.add(one)
      one
        .on('error', () => {})
        .on('close', () => {
          open.delete(one)
          other.destroy()
        })
    }
    socket.pipe(upstream).pipe(socket)
  })
  const port = await listenOnFreePort(server)
  const cut = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve())
      for (const socket of open) socket.destroy()
    })
  stopAfterFile(cut)
  return {
    url: `postgresql://${user}@127.0.0.1:${port}/${name}`,
    cut,
    restore: () => listenOn(server, port),
  }
}
