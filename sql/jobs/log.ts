import { noRows, type Query, sql } from '../db.ts'

/** A worker's log line about a job, stored for the job's details page. */

export interface LogLine {
  readonly job_id: string
  readonly attempt: number | null
  /** Time in ISO 8601 format. */
  readonly at: string
  readonly level: string
  readonly message: string
  /** Additional structured fields of the log line. */
  readonly data: Readonly<Record<string, unknown>>
  /** True if an HTTP worker has reported it. */
  readonly is_reported?: boolean
  /** Number of the line within its attempt; a repeated one is not stored again. */
  readonly n?: number
}

/** Maximum number of lines to store per job. Later lines are dropped. */
export const MAX_LOG_LINES = 200

// Storing lines waits for transactions that end or delete the same jobs. This cannot deadlock, because those
// transactions lock jobs in the same order or do not wait for locks.
/** Stores log lines, except lines of jobs that no longer exist. */
export const storeLogLines = (lines: readonly LogLine[]): Query<unknown> =>
  sql.prepared('job_log_keep', noRows)`
    with line as materialized (
      select *, row_number() over (partition by job_id order by n) as line_number
      from rows from (jsonb_to_recordset(${JSON.stringify(lines)}::jsonb)
        as (job_id uuid, attempt integer, at timestamptz, level text, message text, data jsonb, is_reported boolean, n integer))
        with ordinality as l(job_id, attempt, at, level, message, data, is_reported, number, n)
    ), kept as materialized (
      select id, (select count(*) from (select from job_log where job_id = job.id limit ${MAX_LOG_LINES}) lines) as stored
      from job where id = any(array(select job_id from line)) order by id for key share
    )
    insert into job_log (job_id, attempt, at, level, message, data, is_reported, n)
    select job_id, attempt, at, level, message, data, coalesce(is_reported, false), number from line join kept on kept.id = line.job_id
    where stored + line_number <= ${MAX_LOG_LINES} order by line.n
    on conflict (job_id, attempt, n) where n is not null do nothing`
