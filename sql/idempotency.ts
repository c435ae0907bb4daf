import { z } from 'zod'
import { noRows, type Query, sql } from './db.ts'

/** The first answers to Idempotency-Keys. `scope` is the caller and the route, so that keys of others never meet. */

const Claim = z.object({
  fresh: z.boolean(),
  same: z.boolean(),
  status: z.number().nullable(),
  headers: z.array(z.tuple([z.string(), z.string()])).nullable(),
  body: z.string().nullable(),
  job_id: z.string().nullable(),
})
export type Claim = z.output<typeof Claim>

/**
 * Takes a key for this request, or answers what became of the request that has it. A request that died without
 * an answer holds its key until `locked_until`.
 */
export const claimKey = (
  scope: string,
  key: string,
  fingerprint: Buffer,
  lockSeconds: number,
): Query<Claim> =>
  sql.type(Claim)`
    select fresh, same, status, headers, body, job_id from idempotency_claim(${scope}, ${key}, ${sql.binary(fingerprint)},
      make_interval(secs => ${lockSeconds}::float8))`

/** Ties a key to the job that answers for it, in the transaction that enqueues the job. */
export const tieKeyToJob = (scope: string, key: string, jobId: string): Query<unknown> =>
  sql.type(noRows)`update idempotency_key set job_id = ${jobId}::uuid where scope = ${scope} and key = ${key}`

export const storeAnswer = (
  scope: string,
  key: string,
  answer: { status: number; headers: readonly (readonly [string, string])[]; body: string },
): Query<unknown> =>
  sql.type(noRows)`
    update idempotency_key set status = ${answer.status}, headers = ${JSON.stringify(answer.headers)}::jsonb, body = ${answer.body}
    where scope = ${scope} and key = ${key}`

/** Gives a key back: its request failed in a way that trying again may cure. */
export const releaseKey = (scope: string, key: string): Query<unknown> =>
  sql.type(noRows)`delete from idempotency_key where scope = ${scope} and key = ${key} and status is null`

export const deleteExpiredIdempotencyKeys = (batch: number): Query<{ count: number }> =>
  sql.type(z.object({ count: z.number() }))`
    with expired as (
      delete from idempotency_key where ctid in (
        select ctid from idempotency_key where created_at < now() - interval '24 hours' order by created_at limit ${batch})
      returning 1
    )
    select count(*)::int as count from expired`
