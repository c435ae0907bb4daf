import { z } from 'zod'
import { noRows, type Query, sql } from '../db.ts'

/**
 * First responses to Idempotency-Keys. `scope` combines the caller and the route, so keys of different callers never
 * collide.
 */

const Claim = z.object({
  state: z.enum(['first', 'running', 'other', 'repeated', 'gone']),
  status: z.number().nullable(),
  headers: z.array(z.tuple([z.string(), z.string()])).nullable(),
  body: z.string().nullable(),
  job_id: z.string().nullable(),
})
/** State of the first request with a key. In state `repeated` without a status, the job holds the response. */
export type Claim = z.output<typeof Claim>

/** A stored response, without headers that belong to a single request such as the request id. */
export interface StoredResponse {
  readonly status: number
  readonly headers: readonly (readonly [string, string])[]
  readonly body: string
}

/** Claims a key until the end of the transaction, or returns the state of the first request with that key. */
export const claimKey = (scope: string, key: string, fingerprint: Buffer): Query<Claim> =>
  sql.type(Claim)`
    select state, status, headers, body, job_id from idempotency_claim(${scope}, ${key}, ${sql.binary(fingerprint)})`

/** Stores the response or the job of a key that {@link claimKey} has claimed. Must run in the same transaction. */
export const storeKey = (
  { scope, key, fingerprint }: { scope: string; key: string; fingerprint: Buffer },
  { jobId, answer }: { jobId?: string; answer?: StoredResponse },
): Query<unknown> =>
  sql.type(noRows)`
    insert into idempotency_key as k (scope, key, fingerprint, job_id, status, headers, body)
    values (${scope}, ${key}, ${sql.binary(fingerprint)}, ${jobId ?? null}::uuid,
      ${answer?.status ?? null}::int2, ${answer === undefined ? null : JSON.stringify(answer.headers)}::jsonb, ${answer?.body ?? null})
    on conflict on constraint idempotency_key_pkey do update
      set fingerprint = excluded.fingerprint, job_id = excluded.job_id, status = excluded.status,
        headers = excluded.headers, body = excluded.body, created_at = now()`

/** Stores the response of a request whose key was claimed for a job. */
export const storeResponse = (scope: string, key: string, answer: StoredResponse): Query<unknown> =>
  sql.type(noRows)`
    update idempotency_key set status = ${answer.status}, headers = ${JSON.stringify(answer.headers)}::jsonb, body = ${answer.body}
    where scope = ${scope} and key = ${key}`

/**
 * Deletes keys older than a day and returns their number. Skips keys that another transaction has locked to reuse them.
 */
export const deleteExpiredIdempotencyKeys = (batch: number): Query<{ count: number }> =>
  sql.type(z.object({ count: z.number() }))`
    with expired as (
      delete from idempotency_key where ctid = any(array(
        select ctid from idempotency_key where created_at < now() - interval '24 hours'
        order by created_at limit ${batch} for update skip locked))
      returning 1
    )
    select count(*)::int as count from expired`
