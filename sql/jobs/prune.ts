import { z } from 'zod'
import { type Query, sql } from '../db.ts'
import type { JobRetention } from './jobs.ts'

/** Pruning of ended jobs and unused rates. */

const Count = z.object({ count: z.number() })

/** True if no job that has not ended needs the result of the row named `job`. */
export const UNNEEDED_CONDITION = sql.fragment`not exists (
  select from job_dependency d join job waiter on waiter.id = d.job_id
  where d.after_id = job.id and waiter.finished_at is null)`

/**
 * Prunes a batch of expired jobs, either failed ones or the others; returns their number. Keeps a job that holds the only
 * response to an Idempotency-Key until the key expires after 24 hours. Keeps the dependencies of jobs that have not ended,
 * and the jobs of a batch until the batch expires.
 */
export const deleteExpiredJobs = (
  which: 'failed' | 'others',
  retention: JobRetention,
  batch: number,
): Query<{ count: number }> =>
  sql.type(Count)`
    with expired as (
      delete from job where ctid = any(array(
        select ctid from job where ${which === 'failed' ? sql.fragment`status = 'failed'` : sql.fragment`status <> 'failed'`}
          and finished_at < now() - make_interval(secs => ${retention[which === 'failed' ? 1 : 0]})
          and ${UNNEEDED_CONDITION}
          and not exists (select from job b where b.id = job.batch_id
            and (job_expires_at(b, ${sql.array(retention, 'float8')}) > now()) is not false)
          and not exists (select from idempotency_key k
            where k.job_id = job.id and k.status is null and k.created_at >= now() - interval '24 hours')
        order by finished_at limit ${batch} for update skip locked))
      returning id
    )
    select count(*)::int as count from expired`

/** Prunes a batch of rates that were unused for an hour and whose mailbox has no live job; returns their number. */
export const deleteUnusedRates = (batch: number): Query<{ count: number }> =>
  sql.type(Count)`
    with unused as (
      delete from start_rate where name = any(array(
        select name from start_rate r where next_at < now() - interval '1 hour'
          and not exists (select from job where mailbox = r.name and status in ('waiting', 'scheduled', 'available'))
          and not exists (select from job where mailbox = r.name and lease_id is not null and mailbox_limit is not null)
        order by next_at limit ${batch} for update skip locked))
      returning name
    )
    select count(*)::int as count from unused`
