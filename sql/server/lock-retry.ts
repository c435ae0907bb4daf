import { setTimeout as delay } from 'node:timers/promises'
import type { Client } from '../connections/driver.ts'
import { StartError } from './start-error.ts'

/**
 * Locks of migrations. A statement that waits for a lock blocks all later ones, even reads. Each wait is therefore
 * short. If it times out, the attempt releases all its locks and is retried.
 */

/** Timing of lock attempts. */
export interface LockTiming {
  /** Maximum time for which a statement waits for a lock. */
  readonly waitMs: number
  /** Pause before the next attempt, during which blocked statements can proceed. */
  readonly pauseMs: number
  /** Time after which no new attempt begins. */
  readonly limitMs: number
}

// `waitMs` exceeds PostgreSQL's deadlock_timeout (1 s), after which PostgreSQL cancels an autovacuum that blocks the
// migration. It is below the server's limit for a read (1.8 s, from READ_TIMEOUT_SECONDS).
export const LOCK_TIMING: LockTiming = { waitMs: 1200, pauseMs: 3000, limitMs: 300_000 }

// SQLSTATEs of lock_not_available and deadlock_detected.
const LOCK_FAILURE_CODES = new Set(['55P03', '40P01'])

/**
 * Query for the oldest transaction, which usually holds the lock. Transactions of other roles are visible only with
 * pg_read_all_stats.
 */
const OLDEST_TRANSACTION = `
  select coalesce(nullif(application_name, ''), usename) as name, pid,
    extract(epoch from clock_timestamp() - xact_start)::int as seconds
  from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
    and xact_start is not null order by xact_start limit 1`

/**
 * Repeats `attempt` until it gets its locks. A failed `attempt` must leave no changes behind. Throws a StartError if it
 * got no lock within `limitMs`.
 *
 * @param subject the beginning of the error message, such as `Migration NAME`.
 */
export async function retryUntilLocked<T>(
  client: Client,
  subject: string,
  { wait, log }: { readonly wait: LockTiming; readonly log: (line: string) => void },
  attempt: () => Promise<T>,
): Promise<T> {
  const startedAt = performance.now()
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      if (!LOCK_FAILURE_CODES.has(sqlStateOf(error))) throw error
      const reason = await describeOldestTransaction(client)
      if (performance.now() - startedAt >= wait.limitMs)
        throw new StartError(
          `${subject} could not get a lock within ${wait.limitMs / 1000} s${reason}. End the blocking transaction, then rerun this; nothing of it has been applied`,
        )
      log(`${subject} could not get a lock, next attempt in ${wait.pauseMs / 1000} s${reason}`)
      await delay(wait.pauseMs)
    }
  }
}

function sqlStateOf(error: unknown): string {
  const { code, cause } = error as { code?: unknown; cause?: { code?: unknown } }
  return String(code ?? cause?.code)
}

async function describeOldestTransaction(client: Client): Promise<string> {
  const { rows } = await client.query<{ name: string; pid: number; seconds: number }>(OLDEST_TRANSACTION)
  if (rows.length === 0) return ''
  const { name, pid, seconds } = rows[0]!
  return `: a transaction of ${name} (process ${pid}) has been open for ${seconds} s`
}
