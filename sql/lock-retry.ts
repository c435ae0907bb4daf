import { setTimeout as delay } from 'node:timers/promises'
import type { Client } from './driver.ts'
import { StartError } from './start-error.ts'

/**
 * Locks of migrations. Behind a lock that is waited for, all that come later wait too, even reads. So each lock is waited for
 * only a moment, and then everything is given back and tried again.
 */

/** How locks are waited for. */
export interface LockWait {
  /** How long a statement waits for a lock. */
  readonly waitMs: number
  /** The pause before the next attempt, in which those who waited behind it go on. */
  readonly pauseMs: number
  /** After this long no other attempt begins. */
  readonly limitMs: number
}

// Longer than PostgreSQL's deadlock_timeout (1 s), after which it ends an autovacuum that is in the way; shorter than the
// server's limit for a read (1.8 s of READ_TIMEOUT_SECONDS).
export const LOCK_WAIT: LockWait = { waitMs: 1200, pauseMs: 3000, limitMs: 300_000 }

// lock_not_available and deadlock_detected.
const NO_LOCK = new Set(['55P03', '40P01'])

/** The oldest transaction: mostly the one that has the lock. Others' transactions are told to pg_read_all_stats alone. */
const OLDEST = `
  select coalesce(nullif(application_name, ''), usename) as name, pid,
    extract(epoch from clock_timestamp() - xact_start)::int as seconds
  from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
    and xact_start is not null order by xact_start limit 1`

/**
 * Repeats `attempt` while it gets no lock; it must leave nothing behind when it fails.
 *
 * @param subject what the attempt applies, at the beginning of a sentence.
 * @throws StartError when it got no lock in all the time that there is.
 */
export async function retryLocks<T>(
  client: Client,
  subject: string,
  { wait, log }: { readonly wait: LockWait; readonly log: (line: string) => void },
  attempt: () => Promise<T>,
): Promise<T> {
  const startedAt = performance.now()
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      if (!NO_LOCK.has(codeOf(error))) throw error
      const reason = await oldestTransaction(client)
      if (performance.now() - startedAt >= wait.limitMs)
        throw new StartError(
          `${subject} got no lock within ${wait.limitMs / 1000} s${reason}. End what is in the way, then run this again; nothing of it has been applied`,
        )
      log(`${subject} got no lock, next attempt in ${wait.pauseMs / 1000} s${reason}`)
      await delay(wait.pauseMs)
    }
  }
}

function codeOf(error: unknown): string {
  const { code, cause } = error as { code?: unknown; cause?: { code?: unknown } }
  return String(code ?? cause?.code)
}

async function oldestTransaction(client: Client): Promise<string> {
  const { rows } = await client.query<{ name: string; pid: number; seconds: number }>(OLDEST)
  if (rows.length === 0) return ''
  const { name, pid, seconds } = rows[0]!
  return `: a transaction of ${name} (process ${pid}) has been open for ${seconds} s`
}
