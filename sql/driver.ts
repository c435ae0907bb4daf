import type { Socket } from 'node:net'
import pg from 'pg'
import { type Servers, serversOf } from './hosts.ts'
import { isSlow, type SlowStatements, tellSlow } from './slow.ts'

/** The only importer of `pg`: every connection of a process is opened here. */
export type Client = pg.Client
export type QueuePool = pg.Pool
export type QueueClient = pg.PoolClient
export const typeParserOf = pg.types.getTypeParser

/** Where a connection goes, and the name that it reports. */
export interface ConnectOptions {
  /** May name several servers: {@link serversOf}. */
  readonly url: string
  readonly applicationName: string
  /** The group that the connection belongs to. */
  readonly connections?: Connections
  /** statement_timeout of the session. Poolers refuse it. */
  readonly statementMs?: number
  /** idle_in_transaction_session_timeout of the session. Poolers refuse it. */
  readonly idleInTransactionMs?: number
  /** How long a statement may take by the client's clock; after that the connection is closed. */
  readonly answerMs?: number
  /** Gets statements that take long, if there is a limit for answers. */
  readonly slow?: SlowStatements | undefined
  /** Command-line options for the session, as in `psql "options=…"`. Poolers refuse them. */
  readonly startOptions?: string
  /** Sends statements without waiting for the answers to those before. */
  readonly pipeline?: boolean
  /** How long connecting may take; default 5 s, or 2 s when there are other servers to try. */
  readonly connectMs?: number
}

// read_only_sql_transaction, what a write would be refused with.
const READ_ONLY = '25006'
// sqlserver_rejected_establishment_of_sqlconnection
const REJECTED = '08004'
// Time for an answer that arrived while the process was blocked to be read.
const GRACE_MS = 100
const NO_ANSWER = 'Connection terminated: the database does not answer'
const CONNECT_MS = 5_000
const CONNECT_ONE_OF_MS = 2_000

/** A group of open connections that are closed together when the database stops answering. */
export class Connections {
  readonly #open = new Set<ServerClient>()

  add(client: ServerClient): void {
    this.#open.add(client)
  }

  delete(client: ServerClient): void {
    this.#open.delete(client)
  }

  /** Whether no connection may be opened, because the database is known not to answer. */
  isRefusing = false

  /** Closes all of them: every statement in flight fails. */
  break(): void {
    for (const client of this.#open) client.break()
  }

  /** Closes all of them, and opens no others until {@link accept}. */
  refuse(): void {
    this.isRefusing = true
    this.break()
  }

  accept(): void {
    this.isRefusing = false
  }
}

// The index of the server to try next, by connection string, so that a server that is gone costs only one wait.
const nextServers = new Map<string, number>()

/** A client of one of the servers; after a failure the next client tries the next server. */
export class ServerClient extends pg.Client {
  readonly #options: ConnectOptions
  readonly #servers: Servers
  readonly #index: number
  readonly #connectMs: number

  constructor(options: ConnectOptions) {
    const servers = serversOf(options.url)
    const { urls } = servers
    const index = (nextServers.get(options.url) ?? 0) % urls.length
    const { applicationName, statementMs, idleInTransactionMs, startOptions, pipeline = false } = options
    const connectMs = options.connectMs ?? (urls.length > 1 ? CONNECT_ONE_OF_MS : CONNECT_MS)
    super({
      connectionString: urls[index]!,
      application_name: applicationName,
      connectionTimeoutMillis: connectMs,
      keepAlive: true,
      pipeline,
      keepAliveInitialDelayMillis: 10_000,
      ...(statementMs && { statement_timeout: statementMs }),
      ...(idleInTransactionMs && { idle_in_transaction_session_timeout: idleInTransactionMs }),
      ...(startOptions && { options: startOptions }),
    })
    this.#options = options
    this.#servers = servers
    this.#index = index
    this.#connectMs = connectMs
    // Every pending query is rejected with it too; `end` follows.
    this.on('error', () => {})
    if (options.answerMs !== undefined) this.query = limited(this, options.answerMs, options.slow)
  }

  // pg-pool passes a callback.
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
    const { urls, wanted } = this.#servers
    if (connections?.isRefusing) throw new Error(NO_ANSWER)
    connections?.add(this)
    this.once('end', () => connections?.delete(this))
    try {
      await super.connect()
      if (wanted !== 'any') await this.#assertIs(wanted)
      nextServers.set(url, this.#index)
      return this
    } catch (error) {
      this.break()
      connections?.delete(this)
      nextServers.set(url, (this.#index + 1) % urls.length)
      throw error
    }
  }

  async #assertIs(wanted: 'primary' | 'standby'): Promise<void> {
    // A server that falls silent right after it took the connection would otherwise be waited for without end.
    const limit = new AnswerLimit(this, this.#connectMs)
    const { rows } = await this.query<{ read_only: string; is_standby: boolean }>(
      `select current_setting('transaction_read_only') as read_only, pg_is_in_recovery() as is_standby`,
    ).finally(() => limit.end())
    const { read_only: readOnly, is_standby: isStandby } = rows[0]!
    if (wanted === 'primary' && readOnly === 'on')
      throw refusal('The server takes no writes: it is a standby, or read-only', READ_ONLY)
    if (wanted === 'standby' && !isStandby) throw refusal('The server is not a standby', REJECTED)
  }

  /** Closes the socket without telling the server. */
  break(): void {
    this.socket.destroy(new Error(NO_ANSWER))
  }

  get socket(): Socket {
    return (this as unknown as { connection: { stream: Socket } }).connection.stream
  }
}

const refusal = (message: string, code: string): Error => Object.assign(new Error(message), { code })

type Answered = (...answer: unknown[]) => void

/** The client's `query` with a time limit, in both its callback and its promise form. */
function limited(client: ServerClient, ms: number, slow: SlowStatements | undefined): Client['query'] {
  const query = client.query.bind(client) as (...args: unknown[]) => unknown
  return ((...args: unknown[]) => {
    const limit = new AnswerLimit(client, ms)
    if (slow !== undefined) limit.watch(slow, args[0] as Asked)
    const answered = args.at(-1)
    if (typeof answered === 'function') {
      const ended: Answered = (...answer) => {
        limit.end()
        ;(answered as Answered)(...answer)
      }
      return query(...args.slice(0, -1), ended)
    }
    return (query(...args) as Promise<unknown>).finally(() => limit.end())
  }) as Client['query']
}

type Asked = string | { readonly name?: string; readonly text: string }

/** Closes a client's connection unless it is cleared in time. */
class AnswerLimit {
  #timer: NodeJS.Timeout
  #report: (() => void) | undefined

  constructor(client: ServerClient, ms: number) {
    // After a freeze, timers fire before pending input is read.
    this.#timer = setTimeout(() => {
      this.#timer = setTimeout(() => client.break(), GRACE_MS)
    }, ms)
  }

  /** Has the statement reported if it is slow. */
  watch(slow: SlowStatements, asked: Asked): void {
    const origin = slow.origin()
    const startedAt = performance.now()
    this.#report = () => {
      const ms = performance.now() - startedAt
      if (isSlow(slow, ms)) tellSlow(slow, typeof asked === 'string' ? { text: asked } : asked, ms, origin)
    }
  }

  end(): void {
    clearTimeout(this.#timer)
    this.#report?.()
  }
}

/** Opens one client of its own, of the first server that takes it. The caller listens to `end`, and ends it. */
export async function connect(options: ConnectOptions): Promise<Client> {
  for (let left = serversOf(options.url).urls.length; ; left--) {
    try {
      return await new ServerClient(options).connect()
    } catch (error) {
      if (left <= 1) throw error
    }
  }
}

/**
 * Opens and authenticates a connection, TLS included, and returns its socket for {@link Wire}, which speaks the
 * protocol itself from then on.
 */
export async function connectSocket(options: ConnectOptions): Promise<Socket> {
  const client = (await connect(options)) as ServerClient
  const { socket } = client
  // The client is at rest: nothing of its is under way, and from here on it hears nothing.
  for (const event of ['data', 'end', 'close', 'error'] as const) socket.removeAllListeners(event)
  socket.once('close', () => options.connections?.delete(client))
  return socket
}

/**
 * The pool that graphile-worker fetches through. Its commits do not wait for the disk: deliveries are hints, and one
 * that a server crash brings back starts nothing that the ledger says has begun. Poolers refuse this option.
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
