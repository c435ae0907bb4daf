import { z } from 'zod'
import { type Query, sql } from './db.ts'

/** Limits that all edge processes share: requests per client, failed logins per address. */

/** Counts a request against a limit; returns 0, or the ms until the next one is allowed. */
export const takeRequest = (
  name: string,
  subject: string,
  most: number,
  spanSeconds: number,
): Query<{ wait_ms: number }> =>
  sql.prepared('request_limit_take', z.object({ wait_ms: z.number() }))`
    select request_limit_take(${name}, ${subject}, ${most}, make_interval(secs => ${spanSeconds})) as wait_ms`

export const LOGIN_ENDS = ['ok', 'wrong', 'wrong, now locked', 'locked'] as const

/** Decides how a login whose password was checked ends; `subject` is the digest of the address. */
export const endLogin = (
  subject: Buffer,
  matches: boolean,
  mostFailures: number,
  lockSeconds: number,
): Query<{ outcome: (typeof LOGIN_ENDS)[number] }> =>
  sql.prepared('login_end', z.object({ outcome: z.enum(LOGIN_ENDS) }))`
    select login_end(${sql.binary(subject)}, ${matches}, ${mostFailures}, make_interval(secs => ${lockSeconds})) as outcome`

/** Lifts the lock of an address, and forgets its failures. */
export const unlockLogin = (subject: Buffer): Query<unknown> =>
  sql.type(z.unknown())`delete from login_failure where subject = ${sql.binary(subject)}`

/** Deletes counts that no longer limit anything; returns how many. */
export const deleteExpiredLimits = (batch: number): Query<{ count: number }> =>
  sql.type(z.object({ count: z.number() }))`
    with expired as (
      delete from request_limit where (name, subject) in (
        select name, subject from request_limit where expires_at < now() order by expires_at limit ${batch}
        for update skip locked)
      returning 1
    )
    select count(*)::int as count from expired`

/** Deletes login failures older than `keepSeconds`; returns how many. */
export const deleteOldLoginFailures = (keepSeconds: number, batch: number): Query<{ count: number }> =>
  sql.type(z.object({ count: z.number() }))`
    with old as (
      delete from login_failure where subject in (
        select subject from login_failure
        where failed_at < now() - make_interval(secs => ${keepSeconds}) and coalesce(locked_until < now(), true)
        order by failed_at limit ${batch} for update skip locked)
      returning 1
    )
    select count(*)::int as count from old`
