import type { Socket } from 'node:net'
import pg from 'pg'

/** The only importer of `pg`: bare clients for what a query pool can't do, and the pool that the queue library wants. */
export type Client = pg.Client
export type QueuePool = pg.Pool

/** How every connection of a process introduces itself and gives up. */
export interface ConnectOptions {
  readonly url: string
  readonly applicationName: string
}

function base(options: ConnectOptions) {
  return {
    connectionString: options.url,
    application_name: options.applicationName,
    connectionTimeoutMillis: 5_000,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
  }
}

/** Opens one client of its own. The caller listens to `error` and `end`, and ends it. */
export async function connect(options: ConnectOptions): Promise<Client> {
  const client = new pg.Client(base(options))
  client.on('error', () => {}) // Every pending query is rejected with it too; `end` follows.
  await client.connect()
  return client
}

/**
 * Opens and authenticates a connection, TLS included, and hands over its socket: for {@link Wire}, which speaks the
 * protocol from there on by itself.
 */
export async function connectSocket(options: ConnectOptions): Promise<Socket> {
  const client = await connect(options)
  const { stream } = (client as unknown as { connection: { stream: Socket } }).connection
  // The client is at rest: nothing of its is under way, and from here on it hears nothing.
  for (const event of ['data', 'end', 'close', 'error'] as const) stream.removeAllListeners(event)
  return stream
}

/**
 * The pool that graphile-worker fetches through. Its commits do not wait for the disk: deliveries are hints, and one that a
 * crash of the server brings back starts nothing that the ledger says has begun. Poolers refuse to be told so.
 */
export function createQueuePool(
  options: ConnectOptions & { size: number; pooled?: boolean; onError: (error: Error) => void },
): QueuePool {
  const pool = new pg.Pool({
    ...base(options),
    ...(options.pooled ? {} : { options: '-c synchronous_commit=off' }),
    max: options.size,
    idleTimeoutMillis: 60_000,
  })
  pool.on('error', options.onError)
  pool.on('connect', (client) => client.on('error', options.onError))
  return pool
}
