import type { Socket } from 'node:net'
import pg from 'pg'

/** The only importer of `pg`: bare clients for what a query pool can't do, and the pool for the queue library. */
export type Client = pg.Client
export type QueuePool = pg.Pool

/** Where a connection goes, and the name that it reports. */
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

/** Opens a dedicated client, which the caller ends. */
export async function connect(options: ConnectOptions): Promise<Client> {
  const client = new pg.Client(base(options))
  client.on('error', () => {}) // Every pending query is rejected with it too; `end` follows.
  await client.connect()
  return client
}

/**
 * Opens and authenticates a connection, TLS included, and returns its socket for {@link Wire}, which speaks the
 * protocol itself from then on.
 */
export async function connectSocket(options: ConnectOptions): Promise<Socket> {
  const client = await connect(options)
  const { stream } = (client as unknown as { connection: { stream: Socket } }).connection
  // The client is idle: no query is pending, and from here on it receives nothing.
  for (const event of ['data', 'end', 'close', 'error'] as const) stream.removeAllListeners(event)
  return stream
}

/**
 * The pool that graphile-worker fetches through. Its commits do not wait for the disk: deliveries are hints, and one
 * that a server crash brings back starts nothing that the ledger says has begun. Poolers refuse this option.
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
