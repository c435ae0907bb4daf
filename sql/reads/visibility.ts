/**
 * Tracks the visibility horizon. A row whose time is the start of its transaction, such as the end of a job, becomes
 * visible only at the commit. A subscriber that continues from a time must therefore not pass transactions that are
 * still open.
 */
export interface VisibilityTracker {
  /** SQL expression for a health check of the primary to evaluate. `onValue` receives its value. */
  readonly expression: string
  readonly onValue: (value: string) => void
  /**
   * Returns the visibility horizon in ms since the epoch. Every write that began before this time had ended by the last
   * probe.
   */
  visibilityHorizon(): number
}

// Allows for two inaccuracies: a transaction starts slightly before others can see it, and the clock offset is not
// exact.
const SLACK_MS = 1_000

// All processes of a service share one role, so each can see when the others' transactions began. The result is empty
// on a standby, which does not show the primary's transactions, and without track_activities.
const OLDEST_TRANSACTION_START = `coalesce((select case when not pg_is_in_recovery() then (extract(epoch from min(xact_start)) * 1000)::text end
  from pg_stat_activity where datname = current_database() and backend_type = 'client backend'), '')`

/**
 * Creates a tracker.
 *
 * @param limitMs time limit of a write. Longer transactions, such as backups, only read.
 * @param now returns the database's time in ms since the epoch.
 */
export function createVisibilityTracker(limitMs: number, now: () => number): VisibilityTracker {
  let oldest = 0
  return {
    expression: OLDEST_TRANSACTION_START,
    onValue: (value) => {
      oldest = Number(value)
    },
    visibilityHorizon: () => Math.max(oldest, now() - limitMs) - SLACK_MS,
  }
}
