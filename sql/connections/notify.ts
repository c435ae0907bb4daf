import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { type Database, noRows, type Query, sql } from '../db.ts'
import { type Client, type ConnectOptions, connect } from './driver.ts'

/** Channel for changed jobs; see `functions/job_notify.sql` for the payload. */
export const JOB_EVENTS_CHANNEL = 'job_events'

/** Channel for workers that start or stop. Its payload is empty. */
export const WORKER_CHANGED_CHANNEL = 'worker_changed'

/** Channel for queues that are paused, resumed or limited. The payload is the queue name. */
export const QUEUE_CHANGED_CHANNEL = 'queue_changed'

/** Channel for new deliveries; see `functions/job_deliver.sql` for the payload. */
export const DELIVERIES_CHANNEL = 'deliveries'

/** Channel for new deliveries of worker queues, with the same payload. */
export const WORKER_DELIVERIES_CHANNEL = 'worker_deliveries'

/** Channel for changed accounts. The payload is the account id. */
export const ACCOUNT_CHANGED_CHANNEL = 'account_changed'

/** Notifies subscribers that a worker has started or stopped. */
export const notifyWorkerChange = (): Query<unknown> =>
  sql.type(noRows)`select pg_notify(${WORKER_CHANGED_CHANNEL}, '')`

/**
 * Notifies subscribers of changed jobs directly, for code without a {@link Publisher}. `afters` has the number of the last
 * event that was announced before, null if it is unknown. A notification stores nothing, but its reads can set hint bits,
 * which are written to the WAL. Without the setting, its commit would then wait for the disk and the synchronous standby.
 */
export const notifyJobChanges = (
  ids: readonly string[],
  afters: readonly (number | null)[] = ids.map(() => null),
): Query<unknown> =>
  sql.prepared('notify', z.unknown())`
    select set_config('synchronous_commit', 'off', true), job_notify(${sql.array(ids, 'uuid')}, ${sql.array(afters, 'int4')})::text`

const BATCH_INTERVAL_MS = 25
// Short delay for live output, such as a model's words, which is already batched when it gets here.
const SOON_DELAY_MS = 2
// A commit that notifies and writes holds a cluster-wide lock while it flushes. A process is therefore limited to ten
// such commits per second.
const CLAIM_NOTIFY_INTERVAL_MS = 100

/**
 * Notifies subscribers of changed jobs, in its own transactions. A commit that notifies holds a cluster-wide lock, so
 * notifications are batched. The first of a burst is sent immediately, the rest at most once per 25 ms.
 */
export interface Publisher {
  /** `after` is the number of the job's last event before the change; by default, only the last event is new. */
  notify(jobId: string, urgency?: Urgency, after?: number | null): void
  /**
   * Returns true if the caller's own statement may notify about its jobs, which saves a round trip. Jobs passed to `notify`
   * afterwards follow 25 ms later.
   */
  takeTurn(urgency: Urgency): boolean
  /** As {@link takeTurn}, for statements that write and notify in the same commit: at most ten times a second. */
  claimNotify(): boolean
  /** Sends pending notifications and resolves once they are sent. */
  close(): Promise<void>
}

/**
 * - `next`: immediately, or with the next batch of a burst
 * - `soon`: within 2 ms even during a burst, for output that is already batched
 */
type Urgency = 'next' | 'soon'

export function createPublisher(db: Database, onError: (error: unknown) => void): Publisher {
  /** The changed jobs, with the number of the last event before the changes. */
  const dirty = new Map<string, number | null>()
  let sending: Promise<void> | null = null
  let isSoon = false
  let flush: (() => void) | null = null
  let claimedAt = Number.NEGATIVE_INFINITY

  const send = async (): Promise<void> => {
    while (dirty.size > 0) {
      const changed = notifyJobChanges([...dirty.keys()], [...dirty.values()])
      dirty.clear()
      isSoon = false
      // If this notification is lost, subscribers notice the change at their next slow poll. The rows are already
      // stored.
      await db.run(changed).catch(onError)
      await pause()
    }
    sending = null
  }

  const pause = async (): Promise<void> => {
    await new Promise<void>((resolve) => setTimeout(resolve, SOON_DELAY_MS))
    if (isSoon) return
    await new Promise<void>((resolve) => {
      flush = resolve
      setTimeout(resolve, BATCH_INTERVAL_MS - SOON_DELAY_MS)
    })
    flush = null
  }

  const takeTurn = (urgency: Urgency): boolean => {
    if (sending !== null) return urgency === 'soon' && flush !== null && dirty.size === 0
    sending = pause().then(send)
    return true
  }

  return {
    notify: (jobId, urgency = 'next', after = null) => {
      const earlier = dirty.get(jobId) ?? after
      dirty.set(jobId, after === null || earlier === null ? earlier : Math.min(earlier, after))
      if (urgency === 'soon') {
        isSoon = true
        flush?.()
      }
      sending ??= Promise.resolve().then(send)
    },
    takeTurn,
    claimNotify: () => {
      if (Date.now() - claimedAt < CLAIM_NOTIFY_INTERVAL_MS || !takeTurn('next')) return false
      claimedAt = Date.now()
      return true
    },
    close: async () => {
      await sending
    },
  }
}

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
