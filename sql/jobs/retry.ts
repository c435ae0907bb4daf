import { z } from 'zod'
import { noRows, type Query, sql } from '../db.ts'

/** Retries of failed jobs. A retry is a new job; the failed job and its terminal event do not change. */

const RetriedJob = z.object({
  name: z.string(),
  payload: z.unknown(),
  owner_id: z.number().nullable(),
  status: z.string(),
})
export type RetriedJob = z.output<typeof RetriedJob>

/** Locks a job, so that the second of two concurrent retry requests finds the retry that the first one added. */
export const lockJobToRetry = (id: string): Query<RetriedJob> =>
  sql.type(
    RetriedJob,
  )`select name, payload, owner_id, job_client_status(status) as status from job where id = ${id}::uuid for update`

/** Returns the job that retries a failed job; no row if there is none. */
export const findRetry = (id: string): Query<{ id: string }> =>
  sql.type(z.object({ id: z.string() }))`select id from job where retry_of = ${id}::uuid`

/** Links a new job to the failed job that it retries. */
export const linkRetry = (id: string, failed: string): Query<unknown> =>
  sql.type(noRows)`update job set retry_of = ${failed}::uuid where id = ${id}::uuid`
