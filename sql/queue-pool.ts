import { EventEmitter } from 'node:events'
import { type ConnectOptions, createQueuePool, type QueuePool } from './driver.ts'
import { listen } from './listen.ts'

export interface QueuePoolOptions extends ConnectOptions {
  /** Where LISTEN works: another one when `url` leads through a pooler in transaction mode. */
  readonly directUrl: string
  readonly pooled: boolean
  /** Most connections at once, besides that of LISTEN. */
  readonly size: number
  readonly onError: (error: unknown) => void
}

// What graphile-worker listens to, and how it calls that it has missed something.
const CHANNELS = ['jobs:insert', 'worker:migrate']
const ANYTHING = { channel: 'jobs:insert', payload: '{"count":1}' }

type Listening = (error: undefined, client: SharedListenClient, release: () => void) => void

/** What a runner takes for its own connection, and says LISTEN and UNLISTEN to. */
class SharedListenClient extends EventEmitter {
  query(): Promise<void> {
    return Promise.resolve()
  }
}

/**
 * The pool of a worker's queue runners. Each of them asks it for a connection to LISTEN on, for good; they get one that all of
 * them share, and that is found out when it goes deaf.
 */
export async function openQueuePool(options: QueuePoolOptions): Promise<QueuePool> {
  const { directUrl, applicationName, connections, onError } = options
  const clients = new Set<SharedListenClient>()
  const tell = (channel: string, payload: string): void => {
    for (const client of clients) client.emit('notification', { channel, payload })
  }
  const listener = await listen({
    url: directUrl,
    applicationName: `${applicationName}-listen`,
    ...(connections && { connections }),
    channels: Object.fromEntries(CHANNELS.map((name) => [name, (payload) => tell(name, payload)])),
    onReconnect: () => tell(ANYTHING.channel, ANYTHING.payload),
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
    // Only for LISTEN does the library ask with a callback.
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
