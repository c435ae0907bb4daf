import { EventEmitter } from 'node:events'
import { type ConnectOptions, createQueuePool, type QueuePool } from './driver.ts'
import { listen } from './listen.ts'

export interface QueuePoolOptions extends ConnectOptions {
  /** Connection string for LISTEN, which differs from `url` behind a pooler in transaction mode. */
  readonly directUrl: string
  readonly pooled: boolean
  /** Maximum number of connections, not counting the one for LISTEN. */
  readonly size: number
  readonly onError: (error: unknown) => void
  /** Additional channels to listen on. `onChange` runs on each notification and after each (re)connect. */
  readonly extraChannels?: { readonly channels: readonly string[]; readonly onChange: () => void }
}

// The channels of graphile-worker, and the notification that makes its runners fetch missed jobs.
const GRAPHILE_CHANNELS = ['jobs:insert', 'worker:migrate']
const WAKE_PAYLOAD = { channel: 'jobs:insert', payload: '{"count":1}' }

type ListenCallback = (error: undefined, client: SharedListenClient, release: () => void) => void

/** Stands in for a runner's own LISTEN connection. Ignores LISTEN and UNLISTEN statements. */
class SharedListenClient extends EventEmitter {
  query(): Promise<void> {
    return Promise.resolve()
  }
}

/**
 * Opens the pool for a worker's queue runners. Each runner requests a permanent connection for LISTEN; all of them
 * share one. The pool checks this connection at intervals and replaces it if it fails.
 */
export async function openQueuePool(options: QueuePoolOptions): Promise<QueuePool> {
  const { directUrl, applicationName, connections, onError, extraChannels } = options
  const clients = new Set<SharedListenClient>()
  const notifyClients = (channel: string, payload: string): void => {
    for (const client of clients) client.emit('notification', { channel, payload })
  }
  const listener = await listen({
    url: directUrl,
    applicationName: `${applicationName}-listen`,
    ...(connections && { connections }),
    channels: {
      ...Object.fromEntries(
        GRAPHILE_CHANNELS.map((name) => [name, (payload: string) => notifyClients(name, payload)]),
      ),
      ...Object.fromEntries(
        (extraChannels?.channels ?? []).map((name) => [name, () => extraChannels?.onChange()]),
      ),
    },
    onReconnect: () => {
      notifyClients(WAKE_PAYLOAD.channel, WAKE_PAYLOAD.payload)
      extraChannels?.onChange()
    },
    onError,
  })
  const pool = createQueuePool(options)
  const shareListener = (callback: ListenCallback): void => {
    const client = new SharedListenClient()
    clients.add(client)
    callback(undefined, client, () => clients.delete(client))
  }
  const shared = {
    options: pool.options,
    // graphile-worker passes a callback only when it wants to LISTEN.
    connect: (listening?: ListenCallback) =>
      listening === undefined ? pool.connect() : shareListener(listening),
    query: pool.query.bind(pool),
    on: pool.on.bind(pool),
    listeners: pool.listeners.bind(pool),
    removeListener: pool.removeListener.bind(pool),
    end: async () => {
      await listener.close()
      await pool.end()
    },
  }
  return shared as unknown as QueuePool
}
