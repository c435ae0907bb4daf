import { z } from 'zod'
import { type Query, sql } from '../db.ts'

/** An attempt whose worker is gone. */

const LostAttempt = z.object({
  id: z.string(),
  name: z.string(),
  queue: z.string(),
  request_id: z.string().nullable(),
  trace_parent: z.string().nullable(),
  attempt: z.number(),
  /** Name of the worker; null if unknown. */
  worker: z.string().nullable(),
  /** Time of the claim, in ms since the epoch. */
  claimed_ms: z.number(),
  /** Time of the rescue, in ms since the epoch. */
  ended_ms: z.number(),
  /** Seconds between the due time and the claim; null if no longer known. */
  waited: z.number().nullable(),
})
export type LostAttempt = z.output<typeof LostAttempt>

/**
 * Returns the lost attempts of jobs that `rescueRunningJobs` returned. The lost attempt is the last interrupted one, or
 * the last one if a requested cancellation ended the job. Attempts that have started since the rescue do not change the
 * result. This is a separate statement because only traces need it.
 */
export const listLostAttempts = (ids: readonly string[]): Query<LostAttempt> =>
  sql.prepared('job_lost', LostAttempt)`
    select job.id, job.name, job.queue, job.request_id, job.trace_parent, lost.attempt, lost.worker,
      extract(epoch from begun.at)::float8 * 1000 as claimed_ms, extract(epoch from lost.at)::float8 * 1000 as ended_ms,
      extract(epoch from begun.at - lost.due_at)::float8 as waited
    from job cross join lateral (
      select e.attempt, e.ended ->> 'worker' as worker, e.created_at as at, (e.ended ->> 'due_at')::timestamptz as due_at
      from job_event_row e where e.job_id = job.id and e.attempt is not null and e.ended ->> 'outcome' = 'interrupted'
      union all
      select job.attempt, job.worker, job.finished_at, null where job.status = 'cancelled'
      order by attempt desc, at limit 1
    ) lost cross join lateral (
      select case when lost.attempt = 1 then job.started_at else (
        select min(e.created_at) from job_event_row e
        where e.job_id = job.id and e.attempt = lost.attempt and e.ended is null) end as at
    ) begun
    where job.id = any(${sql.array(ids, 'uuid')})`
