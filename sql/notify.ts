import { z } from 'zod'
import { type Database, noRows, type Query, sql } from './db.ts'

/** Channel of "these jobs have changed": payload is job ids separated by spaces, or `*` for too many to name. */
export const JOB_EVENTS = 'job_events'

/** Channel of "a worker has come or gone"; the payload says nothing. */
export const WORKER_CHANGED = 'worker_changed'

/** Channel of "this account has changed": payload is the account id. */
export const ACCOUNT_CHANGED = 'account_changed'

/** Tells listeners that a worker has come or gone. */
export const workerChanged = (): Query<unknown> => sql.type(noRows)`select pg_notify(${WORKER_CHANGED}, '')`

/** How many jobs one payload names: it ends at 7999 bytes (PostgreSQL's NOTIFY); 200 ids of 37 characters fit. */
export const MOST_TOLD = 200
// Beyond it a reader finds what it watches sooner by itself than by reading all these.
const MOST_PAYLOADS = 50
const INTERVAL_MS = 25
// What somebody watches come, word by word, is already collected over a time when it gets here.
const SOON_MS = 2
// A commit that notifies and writes holds the lock of the whole cluster while it is flushed: of a process, ten a second at most.
const TURN_MS = 100

/**
 * Tells listeners which jobs have changed, in a transaction of its own. A commit that notifies holds a lock of the
 * whole cluster, so this is done once for many: the first of a burst at once, then at most one per 25 ms.
 */
export interface Publisher {
  notify(jobId: string, urgency?: Urgency): void
  /**
   * Whether a statement of the caller's may tell about its jobs by itself, a round trip sooner: the first of a burst, ten times
   * a second at most. What is marked from then on follows 25 ms later.
   */
  claimSlot(): boolean
  /** Sends what is marked; resolves when it is out. */
  close(): Promise<void>
}

/**
 * `next`: at once, or with the rest of a burst. `soon`: within 2 ms also then, for what was collected already. `later`: never
 * at once, for jobs just added: a worker that is free tells of them first, and in that moment it needs all that is in its way.
 */
type Urgency = 'next' | 'soon' | 'later'

export function createPublisher(db: Database, onError: (error: unknown) => void): Publisher {
  const dirty = new Set<string>()
  let sending: Promise<void> | null = null
  let isSoon = false
  let hurry: (() => void) | null = null
  let turnAt = Number.NEGATIVE_INFINITY

  const send = async (): Promise<void> => {
    while (dirty.size > 0) {
      const payloads = payloadsOf([...dirty])
      dirty.clear()
      isSoon = false
      // A lost hint costs its readers one slow poll; the rows are already there.
      await db
        .run(sql.prepared('notify', z.unknown())`
          select pg_notify(${JOB_EVENTS}, payload) from unnest(${sql.array(payloads, 'text')}) payload`)
        .catch(onError)
      await pause()
    }
    sending = null
  }

  const pause = async (): Promise<void> => {
    await new Promise<void>((resolve) => setTimeout(resolve, SOON_MS))
    if (isSoon) return
    await new Promise<void>((resolve) => {
      hurry = resolve
      setTimeout(resolve, INTERVAL_MS - SOON_MS)
    })
    hurry = null
  }

  return {
    notify: (jobId, urgency = 'next') => {
      dirty.add(jobId)
      if (urgency === 'soon') {
        isSoon = true
        hurry?.()
      }
      sending ??= (urgency === 'later' ? pause() : Promise.resolve()).then(send)
    },
    claimSlot: () => {
      if (sending !== null || Date.now() - turnAt < TURN_MS) return false
      turnAt = Date.now()
      sending = pause().then(send)
      return true
    },
    close: async () => {
      await sending
    },
  }
}

function payloadsOf(ids: readonly string[]): string[] {
  if (ids.length > MOST_TOLD * MOST_PAYLOADS) return ['*']
  const payloads: string[] = []
  for (let start = 0; start < ids.length; start += MOST_TOLD) {
    payloads.push(ids.slice(start, start + MOST_TOLD).join(' '))
  }
  return payloads
}
