import { setTimeout as delay } from 'node:timers/promises'
import { type Client, type ConnectOptions, connect } from './driver.ts'

/**
 * The only LISTEN connection of a process. Notifications are hints, and those sent while the connection is down are
 * lost. After each (re)connect, `onReconnect` must therefore reread everything that a lost notification could have
 * announced.
 */
export interface Listener {
  close(): Promise<void>
  readonly isConnected: boolean
}

export interface ListenOptions extends ConnectOptions {
  /** Maps each channel, as passed to pg_notify, to the handler of its payloads. */
  readonly channels: Readonly<Record<string, (payload: string) => void>>
  readonly onReconnect: () => void
  readonly onError: (error: unknown) => void
  /** Interval of the heartbeat in ms, default 10 s. A half-open socket goes unnoticed until the next heartbeat. */
  readonly heartbeatMs?: number
}

// Time limit of the LISTEN statement and of a heartbeat.
const ANSWER_TIMEOUT_MS = 5_000
const BACKOFF_MS = [50, 100, 250, 500, 1000]

/** Connects and listens until closed, reconnecting when needed. Resolves once the first LISTEN has succeeded. */
export async function listen(options: ListenOptions): Promise<Listener> {
  const stop = new AbortController()
  let client: Client | null = null
  const first = Promise.withResolvers<void>()

  const session = async (): Promise<void> => {
    const opened = await connect({ answerMs: ANSWER_TIMEOUT_MS, ...options })
    const ended = new Promise<void>((resolve) => opened.once('end', resolve))
    opened.on('notification', ({ channel, payload }) => options.channels[channel]?.(payload ?? ''))
    try {
      await opened.query(
        Object.keys(options.channels)
          .map((name) => `listen "${name}"`)
          .join(';'),
      )
      client = opened
      first.resolve()
      options.onReconnect()
      await Promise.race([ended, runHeartbeat(opened, options, stop.signal)])
    } finally {
      client = null
      opened.end().catch(() => {})
    }
  }

  const run = async (): Promise<void> => {
    for (let failures = 0; !stop.signal.aborted; ) {
      const startedAt = performance.now()
      await session().catch((error) => {
        if (!stop.signal.aborted) options.onError(error)
      })
      failures = performance.now() - startedAt > 10_000 ? 0 : failures + 1
      const wait = BACKOFF_MS[Math.min(failures, BACKOFF_MS.length - 1)] ?? 1000
      await delay(wait * (0.5 + Math.random()), undefined, { signal: stop.signal }).catch(() => {})
    }
  }

  const running = run()
  await Promise.race([first.promise, running])
  return {
    get isConnected() {
      return client !== null
    },
    close: async () => {
      stop.abort()
      await running
    },
  }
}

/** Regularly queries the number of active channels. Throws if a channel is missing or no answer arrives in time. */
async function runHeartbeat(client: Client, options: ListenOptions, signal: AbortSignal): Promise<void> {
  const wanted = Object.keys(options.channels).length
  for (;;) {
    try {
      await delay(options.heartbeatMs ?? 10_000, undefined, { signal })
    } catch {
      return
    }
    const { rows } = await client.query<{ n: number }>(
      'select count(*)::int as n from pg_listening_channels()',
    )
    if (rows[0]?.n !== wanted) throw new Error('The LISTEN connection has lost channels')
  }
}
