import { z } from 'zod'
import { nothing, type Query, sql } from './db.ts'

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
    with taken as (
      insert into idempotency_key (scope, key, fingerprint, locked_until)
      values (${scope}, ${key}, ${sql.binary(fingerprint)}, now() + make_interval(secs => ${lockSeconds}))
      on conflict on constraint idempotency_key_pkey do update
        set fingerprint = excluded.fingerprint, locked_until = excluded.locked_until, created_at = now(),
          status = null, headers = null, body = null, job_id = null
        where idempotency_key.created_at < now() - interval '24 hours'
          or (idempotency_key.status is null and idempotency_key.job_id is null and idempotency_key.locked_until < now())
      returning true
    )
    select exists (select from taken) as fresh, coalesce(k.fingerprint = ${sql.binary(fingerprint)}, true) as same,
      k.status, k.headers, k.body, k.job_id
    from (select 1) one left join idempotency_key k
      on k.scope = ${scope} and k.key = ${key} and not exists (select from taken)`

/** Ties a key to the job that answers for it, in the transaction that enqueues the job. */
export const tieKeyToJob = (scope: string, key: string, jobId: string): Query<unknown> =>
  sql.type(
    nothing,
  )`update idempotency_key set job_id = ${jobId}::uuid where scope = ${scope} and key = ${key}`

export const storeAnswer = (
  scope: string,
  key: string,
  answer: { status: number; headers: readonly (readonly [string, string])[]; body: string },
): Query<unknown> =>
  sql.type(nothing)`
    update idempotency_key set status = ${answer.status}, headers = ${JSON.stringify(answer.headers)}::jsonb, body = ${answer.body}
    where scope = ${scope} and key = ${key}`

/** Gives a key back: its request failed in a way that trying again may cure. */
export const releaseKey = (scope: string, key: string): Query<unknown> =>
  sql.type(nothing)`delete from idempotency_key where scope = ${scope} and key = ${key} and status is null`

export const deleteExpiredIdempotencyKeys = (batch: number): Query<{ count: number }> =>
  sql.type(z.object({ count: z.number() }))`
    with expired as (
      delete from idempotency_key where ctid in (
        select ctid from idempotency_key where created_at < now() - interval '24 hours' order by created_at limit ${batch})
      returning 1
    )
    select count(*)::int as count from expired`
