import { z } from 'zod'
import { type Database, noRows, type Query, sql } from './db.ts'

/** Channel of "these jobs have changed": payload is job ids separated by spaces, or `*` for too many to name. */
export const JOB_EVENTS = 'job_events'

/** Channel of "a worker has come or gone"; the payload is empty. */
export const WORKER_CHANGED = 'worker_changed'

/** Channel of "a queue was paused, resumed or limited"; the payload is its name. */
export const QUEUE_CHANGED = 'queue_changed'

/** Channel of "this account has changed": payload is the account id. */
export const ACCOUNT_CHANGED = 'account_changed'

/** Notifies listeners that a worker has come or gone. */
export const workerChanged = (): Query<unknown> => sql.type(noRows)`select pg_notify(${WORKER_CHANGED}, '')`

/** Notifies listeners that jobs have changed, for code without a publisher. */
export const jobsChanged = (ids: readonly string[]): Query<unknown> =>
  sql.prepared('notify', z.unknown())`
    select pg_notify(${JOB_EVENTS}, payload) from unnest(${sql.array(payloadsOf(ids), 'text')}) payload`

/** How many jobs one payload names: NOTIFY limits it to 7999 bytes; 200 ids of 37 characters fit. */
export const MAX_IDS_PER_PAYLOAD = 200
// With more payloads than this, readers find what they watch sooner by re-reading than by going through the ids.
const MAX_PAYLOADS = 50
const INTERVAL_MS = 25
// Output that somebody watches as it comes, word by word, was already batched when it gets here.
const SOON_MS = 2
// A commit that notifies and writes holds a cluster-wide lock while it is flushed: at most ten a second per process.
const CLAIM_INTERVAL_MS = 100

/**
 * Notifies listeners which jobs have changed, in a transaction of its own. A commit that notifies holds a cluster-wide
 * lock, so notifications are batched: the first of a burst at once, then at most one per 25 ms.
 */
export interface Publisher {
  notify(jobId: string, urgency?: Urgency): void
  /**
   * Whether a statement of the caller's may notify about its jobs itself, a round trip sooner: the first of a burst,
   * ten times a second at most. Jobs given to `notify` from then on follow 25 ms later.
   */
  claimSlot(): boolean
  /** Sends what is pending; resolves when it is sent. */
  close(): Promise<void>
}

/**
 * `next`: at once, or with the rest of a burst. `soon`: within 2 ms even in a burst, for what was already batched.
 * `later`: never at once, for jobs just added: a free worker notifies first, and nothing should delay it then.
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
      const changed = jobsChanged([...dirty])
      dirty.clear()
      isSoon = false
      // A lost hint costs its readers one slow poll; the rows are already there.
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
    claimSlot: () => {
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
