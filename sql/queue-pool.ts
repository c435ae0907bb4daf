import { EventEmitter } from 'node:events'
import { type ConnectOptions, createQueuePool, type QueuePool } from './driver.ts'
import { listen } from './listen.ts'

export interface QueuePoolOptions extends ConnectOptions {
  /** Where LISTEN works; differs from `url` when that goes through a pooler in transaction mode. */
  readonly directUrl: string
  readonly pooled: boolean
  /** The maximum number of connections, besides the one for LISTEN. */
  readonly size: number
  readonly onError: (error: unknown) => void
  /** Called for notifications on these channels, and after each (re)connection. */
  readonly also?: { readonly channels: readonly string[]; readonly onChange: () => void }
}

// The channels that graphile-worker listens on, and the notification that makes it look for what it has missed.
const CHANNELS = ['jobs:insert', 'worker:migrate']
const ANYTHING = { channel: 'jobs:insert', payload: '{"count":1}' }

type Listening = (error: undefined, client: SharedListenClient, release: () => void) => void

/** What a runner uses as its own connection for LISTEN and UNLISTEN. */
class SharedListenClient extends EventEmitter {
  query(): Promise<void> {
    return Promise.resolve()
  }
}

/**
 * The pool of a worker's queue runners. Each runner asks it for a permanent connection to LISTEN on; they all
 * share one, which is checked at intervals and replaced.
 */
export async function openQueuePool(options: QueuePoolOptions): Promise<QueuePool> {
  const { directUrl, applicationName, connections, onError, also } = options
  const clients = new Set<SharedListenClient>()
  const tell = (channel: string, payload: string): void => {
    for (const client of clients) client.emit('notification', { channel, payload })
  }
  const listener = await listen({
    url: directUrl,
    applicationName: `${applicationName}-listen`,
    ...(connections && { connections }),
    channels: {
      ...Object.fromEntries(CHANNELS.map((name) => [name, (payload: string) => tell(name, payload)])),
      ...Object.fromEntries((also?.channels ?? []).map((name) => [name, () => also?.onChange()])),
    },
    onReconnect: () => {
      tell(ANYTHING.channel, ANYTHING.payload)
      also?.onChange()
    },
    onError,
  })
  const pool = createQueuePool(options)
  const share = (listening: Listening): void => {
    const client = new SharedListenClient()
    clients.add(client)
    listening(undefined, client, () => clients.delete(client))
  }
  const shared = {
    options: pool.options,
    // The library passes a callback only for LISTEN.
    connect: (listening?: Listening) => (listening === undefined ? pool.connect() : share(listening)),
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
