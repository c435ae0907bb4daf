import type { Socket } from 'node:net'
import pg from 'pg'
import { parseServers, type Servers } from './hosts.ts'
import { isSlow, reportSlow, type SlowStatements } from './slow.ts'

/** The only importer of `pg`. Opens every connection of a process. */
export type Client = pg.Client
export type QueuePool = pg.Pool
export type QueueClient = pg.PoolClient
export type { QueryConfig, QueryResult } from 'pg'
export const typeParserOf = pg.types.getTypeParser

/** Target, application name and limits of a connection. */
export interface ConnectOptions {
  /** Connection string, which may name several servers. See {@link parseServers}. */
  readonly url: string
  readonly applicationName: string
  /** Group to which the connection is added. */
  readonly connections?: ConnectionGroup
  /** `statement_timeout` of the session. Poolers refuse it. */
  readonly statementMs?: number
  /** `idle_in_transaction_session_timeout` of the session. Poolers refuse it. */
  readonly idleInTransactionMs?: number
  /** Time limit of a statement on the client, in ms. After it, the connection is closed. */
  readonly answerMs?: number
  /** Receives slow statements. Requires `answerMs`. */
  readonly slow?: SlowStatements | undefined
  /** Command-line options for the session, as in `psql "options=…"`. Poolers refuse them. */
  readonly startOptions?: string
  /** Connect timeout in ms. Default 5 s, or 2 s when there are other servers to try. */
  readonly connectMs?: number
  /** True if statements are sent without waiting for the answers to earlier ones. */
  readonly pipeline?: boolean
}

// SQLSTATE of read_only_sql_transaction: the error of a write on a read-only server.
const READ_ONLY_SQLSTATE = '25006'
// sqlserver_rejected_establishment_of_sqlconnection
const CONNECTION_REJECTED_SQLSTATE = '08004'
// Grace period in ms to read an answer that arrived while the process was blocked.
const GRACE_PERIOD_MS = 100
const NO_ANSWER_MESSAGE = 'Connection terminated: the database does not answer'
const CONNECT_TIMEOUT_MS = 5_000
const MULTI_HOST_CONNECT_TIMEOUT_MS = 2_000

/** A group of open connections that are closed together when the database stops answering. */
export class ConnectionGroup {
  readonly #open = new Set<ServerClient>()

  add(client: ServerClient): void {
    this.#open.add(client)
  }

  delete(client: ServerClient): void {
    this.#open.delete(client)
  }

  /** True while no connection may be opened, because the database is unresponsive. */
  isRefusing = false

  /** Closes all connections, which fails every statement in flight. */
  closeAll(): void {
    for (const client of this.#open) client.destroySocket()
  }

  /** Closes all connections and opens none until {@link accept}. */
  refuse(): void {
    this.isRefusing = true
    this.closeAll()
  }

  accept(): void {
    this.isRefusing = false
  }
}

// Index of the next server to try, by connection string. Remembered so that a lost server costs only one timeout.
const nextServers = new Map<string, number>()

/** A client of one server. After a failure, the next client tries the next server. */
export class ServerClient extends pg.Client {
  readonly #options: ConnectOptions
  readonly #servers: Servers
  readonly #index: number
  readonly #connectMs: number

  constructor(options: ConnectOptions) {
    const servers = parseServers(options.url)
    const { urls } = servers
    const index = (nextServers.get(options.url) ?? 0) % urls.length
    const { applicationName, statementMs, idleInTransactionMs, startOptions, pipeline } = options
    const connectMs =
      options.connectMs ?? (urls.length > 1 ? MULTI_HOST_CONNECT_TIMEOUT_MS : CONNECT_TIMEOUT_MS)
    super({
      connectionString: urls[index]!,
      application_name: applicationName,
      connectionTimeoutMillis: connectMs,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      ...(statementMs && { statement_timeout: statementMs }),
      ...(idleInTransactionMs && { idle_in_transaction_session_timeout: idleInTransactionMs }),
      ...(startOptions && { options: startOptions }),
      ...(pipeline && { pipeline }),
    } as pg.ClientConfig)
    this.#options = options
    this.#servers = servers
    this.#index = index
    this.#connectMs = connectMs
    // Ignores the error, because pending queries are rejected with it and `end` follows.
    this.on('error', () => {})
    if (options.answerMs !== undefined) this.query = limitAnswers(this, options.answerMs, options.slow)
  }

  // Supports callbacks, because pg-pool passes one.
  override connect(): Promise<this>
  override connect(callback: (error: Error) => void): void
  override connect(callback?: (error: Error) => void): Promise<this> | undefined {
    const opened = this.#open()
    if (callback === undefined) return opened
    opened.then(() => callback(undefined as never), callback)
    return undefined
  }

  async #open(): Promise<this> {
    const { url, connections } = this.#options
    const { urls, requiredRole } = this.#servers
    if (connections?.isRefusing) throw new Error(NO_ANSWER_MESSAGE)
    connections?.add(this)
    this.once('end', () => connections?.delete(this))
    try {
      await super.connect()
      if (requiredRole !== 'any') await this.#assertRole(requiredRole)
      nextServers.set(url, this.#index)
      return this
    } catch (error) {
      this.destroySocket()
      connections?.delete(this)
      nextServers.set(url, (this.#index + 1) % urls.length)
      throw error
    }
  }

  async #assertRole(wanted: 'primary' | 'standby'): Promise<void> {
    // Without this timer, a server that goes silent right after the connect would block the query forever.
    const limit = new AnswerTimer(this, this.#connectMs)
    const { rows } = await this.query<{ read_only: string; is_standby: boolean }>(
      `select current_setting('transaction_read_only') as read_only, pg_is_in_recovery() as is_standby`,
    ).finally(() => limit.clear())
    const { read_only: readOnly, is_standby: isStandby } = rows[0]!
    if (wanted === 'primary' && readOnly === 'on')
      throw createServerError(
        'The server accepts no writes: it is a standby or read-only',
        READ_ONLY_SQLSTATE,
      )
    if (wanted === 'standby' && !isStandby)
      throw createServerError('The server is not a standby', CONNECTION_REJECTED_SQLSTATE)
  }

  /** Destroys the socket without notifying the server. */
  destroySocket(): void {
    this.socket.destroy(new Error(NO_ANSWER_MESSAGE))
  }

  get socket(): Socket {
    return (this as unknown as { connection: { stream: Socket } }).connection.stream
  }
}

const createServerError = (message: string, code: string): Error =>
  Object.assign(new Error(message), { code })

type QueryCallback = (...answer: unknown[]) => void

/** Wraps the client's `query` with a time limit, in both its callback and its promise form. */
function limitAnswers(client: ServerClient, ms: number, slow: SlowStatements | undefined): Client['query'] {
  const query = client.query.bind(client) as (...args: unknown[]) => unknown
  return ((...args: unknown[]) => {
    const limit = new AnswerTimer(client, ms)
    if (slow !== undefined) limit.reportIfSlow(slow, args[0] as QueryInput)
    const callback = args.at(-1)
    if (typeof callback === 'function') {
      const finish: QueryCallback = (...answer) => {
        limit.clear()
        ;(callback as QueryCallback)(...answer)
      }
      return query(...args.slice(0, -1), finish)
    }
    return (query(...args) as Promise<unknown>).finally(() => limit.clear())
  }) as Client['query']
}

type QueryInput = string | { readonly name?: string; readonly text: string }

/** Closes a client's connection unless the timer is cleared in time. */
class AnswerTimer {
  #timer: NodeJS.Timeout
  #report: (() => void) | undefined

  constructor(client: ServerClient, ms: number) {
    // A second timer follows, because after a freeze timers fire before pending input is read.
    this.#timer = setTimeout(() => {
      this.#timer = setTimeout(() => client.destroySocket(), GRACE_PERIOD_MS)
    }, ms)
  }

  /** Makes {@link clear} report the statement if it was slow. */
  reportIfSlow(slow: SlowStatements, asked: QueryInput): void {
    const origin = slow.origin()
    const startedAt = performance.now()
    this.#report = () => {
      const ms = performance.now() - startedAt
      if (isSlow(slow, ms)) reportSlow(slow, typeof asked === 'string' ? { text: asked } : asked, ms, origin)
    }
  }

  clear(): void {
    clearTimeout(this.#timer)
    this.#report?.()
  }
}

/** Opens a client on the first server that accepts it. The caller must handle `end` and close the client. */
export async function connect(options: ConnectOptions): Promise<Client> {
  for (let attempts = parseServers(options.url).urls.length; ; attempts--) {
    try {
      return await new ServerClient(options).connect()
    } catch (error) {
      if (attempts <= 1) throw error
    }
  }
}

/**
 * Opens and authenticates a connection, including TLS, and returns its socket. {@link Wire} then speaks the protocol
 * itself.
 */
export async function connectSocket(options: ConnectOptions): Promise<Socket> {
  const client = (await connect(options)) as ServerClient
  const { socket } = client
  // The client is idle. Without these listeners, it ignores the socket.
  for (const event of ['data', 'end', 'close', 'error'] as const) socket.removeAllListeners(event)
  socket.once('close', () => options.connections?.delete(client))
  return socket
}

/**
 * Creates the pool through which graphile-worker fetches deliveries. Its commits do not wait for the disk, because
 * deliveries are hints. A delivery that reappears after a server crash starts no job twice. Commits through a pooler do
 * wait, because poolers refuse start options.
 */
export function createQueuePool(
  options: ConnectOptions & { size: number; pooled?: boolean; onError: (error: Error) => void },
): QueuePool {
  const { size, pooled, onError } = options
  const clientOptions = pooled ? options : { ...options, startOptions: '-c synchronous_commit=off' }
  class FetchClient extends ServerClient {
    constructor() {
      super(clientOptions)
    }
  }
  const pool = new pg.Pool({ Client: FetchClient, max: size, idleTimeoutMillis: 60_000 } as pg.PoolConfig)
  pool.on('error', onError)
  pool.on('connect', (client) => client.on('error', onError))
  return pool
}
