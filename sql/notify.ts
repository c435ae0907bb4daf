import { z } from 'zod'
import { type Database, noRows, type Query, sql } from './db.ts'

/** Channel for changed jobs. Payload: job ids separated by spaces, or `*` for too many to name. */
export const JOB_EVENTS = 'job_events'

/** Channel for workers that start or stop. The payload is empty. */
export const WORKER_CHANGED = 'worker_changed'

/** Channel for queues that are paused, resumed or limited. Payload: the name of the queue. */
export const QUEUE_CHANGED = 'queue_changed'

/** Channel for changed accounts. Payload: the account id. */
export const ACCOUNT_CHANGED = 'account_changed'

/** Notifies listeners that a worker has started or stopped. */
export const notifyWorkerChange = (): Query<unknown> =>
  sql.type(noRows)`select pg_notify(${WORKER_CHANGED}, '')`

/** Notifies listeners that jobs have changed, for code without a publisher. */
export const notifyJobChanges = (ids: readonly string[]): Query<unknown> =>
  sql.prepared('notify', z.unknown())`
    select pg_notify(${JOB_EVENTS}, payload) from unnest(${sql.array(payloadsOf(ids), 'text')}) payload`

/** Maximum number of job ids in a payload. NOTIFY limits it to 7999 bytes; 200 ids of 37 characters fit. */
export const MAX_IDS_PER_PAYLOAD = 200
// Beyond this, subscribers find their jobs sooner by rereading them than by scanning the ids.
const MAX_PAYLOADS = 50
const INTERVAL_MS = 25
// Live output, such as word by word, is already batched when it gets here.
const SOON_MS = 2
// A commit that notifies and writes holds a cluster-wide lock during its flush: at most ten a second per process.
const CLAIM_INTERVAL_MS = 100

/**
 * Notifies listeners of changed jobs, in transactions of its own. A commit that notifies holds a cluster-wide lock, so
 * notifications are batched. The first of a burst goes out immediately, the rest at most once per 25 ms.
 */
export interface Publisher {
  notify(jobId: string, urgency?: Urgency): void
  /**
   * True if a statement of the caller may itself notify about its jobs, which saves a round trip. Allows the first of a
   * burst, at most ten times a second. Jobs passed to `notify` afterwards follow 25 ms later.
   */
  claimNotify(): boolean
  /** Sends pending notifications; resolves when they are sent. */
  close(): Promise<void>
}

/**
 * `next`: immediately, or with the next batch of a burst. `soon`: within 2 ms even in a burst, for output that is
 * already batched. `later`: never immediately, for jobs just added: a free worker notifies first, and nothing should
 * delay it then.
 */
type Urgency = 'next' | 'soon' | 'later'

export function createPublisher(db: Database, onError: (error: unknown) => void): Publisher {
  const dirty = new Set<string>()
  let sending: Promise<void> | null = null
  let isSoon = false
  let flush: (() => void) | null = null
  let claimedAt = Number.NEGATIVE_INFINITY

  const send = async (): Promise<void> => {
    while (dirty.size > 0) {
      const changed = notifyJobChanges([...dirty])
      dirty.clear()
      isSoon = false
      // A lost hint costs its subscribers one slow poll; the rows are already there.
      await db.run(changed).catch(onError)
      await pause()
    }
    sending = null
  }

  const pause = async (): Promise<void> => {
    await new Promise<void>((resolve) => setTimeout(resolve, SOON_MS))
    if (isSoon) return
    await new Promise<void>((resolve) => {
      flush = resolve
      setTimeout(resolve, INTERVAL_MS - SOON_MS)
    })
    flush = null
  }

  return {
    notify: (jobId, urgency = 'next') => {
      dirty.add(jobId)
      if (urgency === 'soon') {
        isSoon = true
        flush?.()
      }
      sending ??= (urgency === 'later' ? pause() : Promise.resolve()).then(send)
    },
    claimNotify: () => {
      if (sending !== null || Date.now() - claimedAt < CLAIM_INTERVAL_MS) return false
      claimedAt = Date.now()
      sending = pause().then(send)
      return true
    },
    close: async () => {
      await sending
    },
  }
}

function payloadsOf(ids: readonly string[]): string[] {
  if (ids.length > MAX_IDS_PER_PAYLOAD * MAX_PAYLOADS) return ['*']
  const payloads: string[] = []
  for (let start = 0; start < ids.length; start += MAX_IDS_PER_PAYLOAD) {
    payloads.push(ids.slice(start, start + MAX_IDS_PER_PAYLOAD).join(' '))
  }
  return payloads
}
