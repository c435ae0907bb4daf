/**
 * Until when everything is settled. What has the time at which its transaction began, such as the end of a job, becomes
 * visible only when that commits: whoever reads on from a time must not have read beyond what was still under way.
 */
export interface Settled {
  /** For a pulse of the primary: SQL, and what takes its value. */
  readonly probe: string
  readonly onProbe: (value: string) => void
  /** The time, in ms since 1970, before which every transaction began that was still open at the last beat. */
  until(): number
}

// A transaction has its time before it can be seen, and the clock is known to about as much.
const SLACK_MS = 1_000

// The processes of a service have one role, so that they see when each other's transactions began. Those of a primary are not
// seen on its standby, and none where activities are not tracked.
const OLDEST = `coalesce((select case when not pg_is_in_recovery() then (extract(epoch from min(xact_start)) * 1000)::text end
  from pg_stat_activity where datname = current_database() and backend_type = 'client backend'), '')`

/** @param limitMs how long a write may take: reading, such as a backup, goes on for longer. @param now the database's time. */
export function createSettled(limitMs: number, now: () => number): Settled {
  let oldest = 0
  return {
    probe: OLDEST,
    onProbe: (value) => {
      oldest = Number(value)
    },
    until: () => Math.max(oldest, now() - limitMs) - SLACK_MS,
  }
}
