import { EventEmitter } from 'node:events'
import { type ConnectOptions, createQueuePool, type QueuePool } from './driver.ts'
import { DELIVERIES_CHANNEL, listen } from './notify.ts'

export interface QueuePoolOptions extends ConnectOptions {
  /** Connection string for LISTEN, which differs from `url` behind a pooler in transaction mode. */
  readonly directUrl: string
  readonly pooled: boolean
  /** Maximum number of connections, not counting the one for LISTEN. */
  readonly size: number
  readonly onError: (error: unknown) => void
  /** Additional channels to listen on, with the handlers of their payloads. */
  readonly extraChannels?: Readonly<Record<string, (payload: string) => void>>
  /** Called after each (re)connect, because notifications may have been lost. */
  readonly onReconnect?: () => void
}

/** The connections of a worker's queue runners. */
export interface QueueConnections {
  /** Returns the pool for a runner. A notification of deliveries wakes it only if they are of these tasks. */
  poolFor(tasks: readonly string[]): RunnerPool
  end(): Promise<void>
}

/** The pool of one runner. */
export type RunnerPool = QueuePool

// The channel on which graphile-worker expects notifications of deliveries, and a number of them that wakes all handlers.
const GRAPHILE_CHANNEL = 'jobs:insert'
const WAKE_ALL = 1000
// Sent when the tables of graphile-worker have been migrated.
const MIGRATION_CHANNEL = 'worker:migrate'

type ListenCallback = (error: undefined, client: SharedListenClient, release: () => void) => void

/** Stands in for a runner's own LISTEN connection. Ignores LISTEN and UNLISTEN statements. */
class SharedListenClient extends EventEmitter {
  query(): Promise<void> {
    return Promise.resolve()
  }
}

/** The LISTEN connections that stand in for those of one runner. */
class RunnerListeners {
  readonly #tasks: ReadonlySet<string>
  readonly #clients = new Set<SharedListenClient>()

  constructor(tasks: readonly string[]) {
    this.#tasks = new Set(tasks)
  }

  add(callback: ListenCallback): void {
    const client = new SharedListenClient()
    this.#clients.add(client)
    callback(undefined, client, () => this.#clients.delete(client))
  }

  notify(channel: string, payload: string): void {
    for (const client of this.#clients) client.emit('notification', { channel, payload })
  }

  wake(count = WAKE_ALL): void {
    if (count > 0) this.notify(GRAPHILE_CHANNEL, JSON.stringify({ count }))
  }

  /** Wakes the runner for the deliveries of its tasks. */
  announce(payload: string): void {
    this.wake(payload === '' ? WAKE_ALL : this.#countDeliveries(payload))
  }

  #countDeliveries(payload: string): number {
    let count = 0
    for (const entry of payload.split(' ')) {
      const colon = entry.lastIndexOf(':')
      if (this.#tasks.has(entry.slice(0, colon))) count += Number(entry.slice(colon + 1))
    }
    return count
  }
}

/**
 * Opens the connections for a worker's queue runners. Each runner requests a permanent connection for LISTEN; all of
 * them share one. It is checked at intervals and replaced if it fails.
 */
export async function openQueueConnections(options: QueuePoolOptions): Promise<QueueConnections> {
  const { directUrl, applicationName, connections, onError, extraChannels = {}, onReconnect } = options
  const runners: RunnerListeners[] = []
  const listener = await listen({
    url: directUrl,
    applicationName: `${applicationName}-listen`,
    ...(connections && { connections }),
    channels: {
      [DELIVERIES_CHANNEL]: (payload) => {
        for (const runner of runners) runner.announce(payload)
      },
      [MIGRATION_CHANNEL]: (payload) => {
        for (const runner of runners) runner.notify(MIGRATION_CHANNEL, payload)
      },
      ...extraChannels,
    },
    onReconnect: () => {
      for (const runner of runners) runner.wake()
      onReconnect?.()
    },
    onError,
  })
  const pool = createQueuePool(options)
  return {
    poolFor: (tasks) => {
      const listeners = new RunnerListeners(tasks)
      runners.push(listeners)
      return {
        options: pool.options,
        // graphile-worker passes a callback only when it wants to LISTEN.
        connect: (listening?: ListenCallback) =>
          listening === undefined ? pool.connect() : listeners.add(listening),
        query: pool.query.bind(pool),
        on: pool.on.bind(pool),
        listeners: pool.listeners.bind(pool),
        removeListener: pool.removeListener.bind(pool),
      } as unknown as RunnerPool
    },
    end: async () => {
      await listener.close()
      await pool.end()
    },
  }
}
