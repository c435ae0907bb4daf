import { z } from 'zod'
import { noRows, type Query, sql } from '../db.ts'

/** Retries of failed jobs. The failed job and its one terminal event stay as they are; a new job does the work. */

const Ended = z.object({
  name: z.string(),
  payload: z.unknown(),
  owner_id: z.number().nullable(),
  status: z.string(),
})
export type Ended = z.output<typeof Ended>

/** A job, locked so that the second of two concurrent retry requests finds the new job of the first. */
export const jobToRetry = (id: string): Query<Ended> =>
  sql.type(Ended)`select name, payload, owner_id, status from job where id = ${id}::uuid for update`

/** The job that retries a failed one, once there is one. */
export const retryOf = (id: string): Query<{ id: string }> =>
  sql.type(z.object({ id: z.string() }))`select id from job where retry_of = ${id}::uuid`

/** Links a new job to the failed one. */
export const tieRetry = (id: string, failed: string): Query<unknown> =>
  sql.type(noRows)`update job set retry_of = ${failed}::uuid where id = ${id}::uuid`

/** Which failed jobs are meant; null: whichever. */
export interface Failed {
  readonly queue: string | null
  readonly task: string | null
  readonly code: string | null
  readonly owner: number | null
  /** When they ended: not before this time. */
  readonly since: Date | null
}

const meant = ({ queue, task, code, owner, since }: Failed) => sql.fragment`
  job.status = 'failed' and (${queue}::text is null or job.queue = ${queue}) and (${task}::text is null or job.name = ${task})
  and (${code}::text is null or job.error_code = ${code}) and (${owner}::int is null or job.owner_id = ${owner})
  and (${since?.toISOString() ?? null}::timestamptz is null or job.finished_at >= ${since?.toISOString() ?? null})
  and not exists (select from job again where again.retry_of = job.id)`

/** How many failed jobs were not retried, and the time of the database. */
export const countFailed = (which: Failed): Query<{ count: number; now: string }> =>
  sql.type(z.object({ count: z.number(), now: z.string() }))`
    select count(*)::int as count, now()::text as now from job where ${meant(which)}`

const Listed = z.object({ id: z.string(), finished_at: z.string(), ordinal: z.number() })
export type ListedFailure = z.output<typeof Listed>

/** Failed jobs that were not retried and ended by `until`, in the order in which they ended, after one of them. */
export const failedJobs = (
  which: Failed,
  until: string,
  after: Pick<ListedFailure, 'finished_at' | 'ordinal'> | null,
  limit: number,
): Query<ListedFailure> =>
  sql.type(Listed)`
    select id, finished_at::text, ordinal from job
    where ${meant(which)} and finished_at <= ${until}::timestamptz
      and (finished_at, ordinal) > (${after?.finished_at ?? '-infinity'}::timestamptz, ${after?.ordinal ?? 0}::bigint)
    order by finished_at, ordinal limit ${limit}`
