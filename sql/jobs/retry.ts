import { z } from 'zod'
import { noRows, type Query, sql } from '../db.ts'

/** Retries of failed jobs. A retry is a new job; the failed job and its terminal event do not change. */

export const RetriedJob = z.object({
  id: z.string(),
  name: z.string(),
  payload: z.unknown(),
  owner_id: z.number().nullable(),
  status: z.string(),
  key: z.string().nullable(),
  mailbox_limit: z.number().nullable(),
  priority: z.union([z.literal(-1), z.literal(1)]).nullable(),
})
export type RetriedJob = z.output<typeof RetriedJob>

/** The columns of a {@link RetriedJob}. */
export const RETRY_COLUMNS = sql.fragment`id, name, payload, owner_id, job_client_status(status) as status, key, mailbox_limit, priority`

/** Locks jobs, so that the second of two concurrent requests finds the retries that the first one added. */
export const lockJobsToRetry = (ids: readonly string[]): Query<RetriedJob> =>
  sql.type(RetriedJob)`
    select ${RETRY_COLUMNS} from job
    where id = any(${sql.array(ids, 'uuid')}) order by ordinal for update`

/** Returns the jobs that retry the given failed jobs. */
export const listRetries = (ids: readonly string[]): Query<{ id: string; retry_of: string }> =>
  sql.type(z.object({ id: z.string(), retry_of: z.string() }))`
    select id, retry_of from job where retry_of = any(${sql.array(ids, 'uuid')})`

/** Links new jobs to the failed jobs that they retry, which have the same positions. */
export const linkRetries = (ids: readonly string[], failed: readonly string[]): Query<unknown> =>
  sql.type(noRows)`
    update job set retry_of = link.failed
    from unnest(${sql.array(ids, 'uuid')}, ${sql.array(failed, 'uuid')}) as link(id, failed) where job.id = link.id`
