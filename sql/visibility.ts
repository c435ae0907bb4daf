/**
 * The visibility horizon. A row with the start time of its transaction, such as the end of a job, becomes visible only
 * at the commit. A subscriber that continues from a time must therefore not pass transactions that are still open.
 */
export interface VisibilityTracker {
  /** For a health check of the primary: an SQL expression, and the receiver of its value. */
  readonly expression: string
  readonly onValue: (value: string) => void
  /** The visibility horizon in ms since 1970: no write that began before it was open at the last probe. */
  visibilityHorizon(): number
}

// A transaction has its start time slightly before others can see it, and the clock offset is about as inexact.
const SLACK_MS = 1_000

// All processes of a service share one role, so each sees when the transactions of the others began. Empty on a
// standby, which does not show the transactions of the primary, and without track_activities.
const OLDEST = `coalesce((select case when not pg_is_in_recovery() then (extract(epoch from min(xact_start)) * 1000)::text end
  from pg_stat_activity where datname = current_database() and backend_type = 'client backend'), '')`

/**
 * @param limitMs time limit of a write; longer transactions, such as backups, only read.
 * @param now returns the database's time in ms since 1970.
 */
export function createVisibilityTracker(limitMs: number, now: () => number): VisibilityTracker {
  let oldest = 0
  return {
    expression: OLDEST,
    onValue: (value) => {
      oldest = Number(value)
    },
    visibilityHorizon: () => Math.max(oldest, now() - limitMs) - SLACK_MS,
  }
}
