import { z } from 'zod'
import { type Query, sql } from './db.ts'

/** Limits that all edge processes share: requests per client, failed logins per address. */

/** Counts a request against a limit; returns 0, or the ms until the next one is allowed. */
export const takeRequest = (
  name: string,
  subject: string,
  max: number,
  spanSeconds: number,
): Query<{ wait_ms: number }> =>
  sql.prepared('request_limit_take', z.object({ wait_ms: z.number() }))`
    select request_limit_take(${name}, ${subject}, ${max}, make_interval(secs => ${spanSeconds})) as wait_ms`

/**
 * What counts failed logins of an address, whose digest it begins with: those from one device, or from all that are not known
 * (null).
 */
export const loginSubject = (address: Buffer, device: Buffer | null): Buffer =>
  device === null
    ? address
    : Buffer.concat([address.subarray(0, SHARED_BYTES), device.subarray(0, address.length - SHARED_BYTES)])

const SHARED_BYTES = 16

const LOGIN_ENDS = ['ok', 'wrong', 'wrong, now locked', 'locked', 'incomplete'] as const
export type LoginEnd = (typeof LOGIN_ENDS)[number]

/** The second factor of an account, and what came of it. */
export interface GivenFactor {
  readonly totpId: string
  /** The time step of a one-time code, -1 for one of no step; null: none came. */
  readonly step: number | null
  /** The digest of a recovery code; null: none came. */
  readonly recovery: Buffer | null
}

/** A row if a subject is locked. */
export const lockedLogin = (subject: Buffer): Query<{ locked: boolean }> =>
  sql.prepared('locked_login', z.object({ locked: z.boolean() }))`
    select true as locked from login_failure
    where subject = ${sql.binary(subject)} and locked_until > clock_timestamp()`

/**
 * Decides how a login whose password was checked ends, and uses up the code of its second factor; `subject` is what
 * {@link loginSubject} gives.
 */
export const endLogin = (
  subject: Buffer,
  matches: boolean,
  maxFailures: number,
  lockSeconds: number,
  factor: GivenFactor | null = null,
): Query<{ outcome: LoginEnd }> => {
  const recovery = factor?.recovery ?? null
  return sql.prepared('login_end', z.object({ outcome: z.enum(LOGIN_ENDS) }))`
    select login_end(${sql.binary(subject)}, ${matches}, ${maxFailures}, make_interval(secs => ${lockSeconds}),
      ${factor?.totpId ?? null}::uuid, ${factor?.step ?? null}::bigint,
      ${recovery === null ? null : sql.binary(recovery)}::bytea) as outcome`
}

/** Lifts the locks of an address, given by its digest, and forgets its failures; also those of known devices. */
export const unlockLogin = (address: Buffer): Query<unknown> => {
  const shared = address.subarray(0, SHARED_BYTES)
  const [first, last] = [0x00, 0xff].map((byte) => Buffer.concat([shared, Buffer.alloc(SHARED_BYTES, byte)]))
  return sql.type(z.unknown())`
    delete from login_failure where subject between ${sql.binary(first!)} and ${sql.binary(last!)}`
}

const deleteExpired = (
  table: ReturnType<typeof sql.fragment>,
  key: ReturnType<typeof sql.fragment>,
  batch: number,
): Query<{ count: number }> =>
  sql.type(z.object({ count: z.number() }))`
    with expired as (
      delete from ${table} where (${key}) in (
        select ${key} from ${table} where expires_at < now() order by expires_at limit ${batch}
        for update skip locked)
      returning 1
    )
    select count(*)::int as count from expired`

/** Deletes rates of webhooks that no longer limit anything. Returns how many. */
export const deleteExpiredRates = (batch: number): Query<{ count: number }> =>
  deleteExpired(sql.fragment`webhook_rate`, sql.fragment`account_id, host`, batch)

/** Deletes counts of requests that no longer limit anything. Returns how many. */
export const deleteExpiredLimits = (batch: number): Query<{ count: number }> =>
  deleteExpired(sql.fragment`request_limit`, sql.fragment`name, subject`, batch)

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
