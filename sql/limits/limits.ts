import { z } from 'zod'
import { type Query, sql } from '../db.ts'
import { deleteExpiredRows } from '../retention/expired.ts'

/** Limits that all edge processes share: requests per client, failed logins per address. */

/**
 * Counts a request against a limit. Returns 0 if the request is allowed, otherwise the ms until the next one is
 * allowed.
 */
export const countRequest = (
  name: string,
  subject: string,
  max: number,
  spanSeconds: number,
): Query<{ wait_ms: number }> =>
  sql.prepared('request_limit_acquire', z.object({ wait_ms: z.number() }))`
    select request_limit_acquire(${name}, ${subject}, ${max}, make_interval(secs => ${spanSeconds})) as wait_ms`

/**
 * Returns the key of the counter for failed logins to an address. Each known device has its own counter; all unknown
 * devices (null) share one. The key begins with the first 16 bytes of the digest of the address.
 */
export const deriveLoginSubject = (address: Buffer, device: Buffer | null): Buffer =>
  device === null
    ? address
    : Buffer.concat([
        address.subarray(0, SHARED_DIGEST_BYTES),
        device.subarray(0, address.length - SHARED_DIGEST_BYTES),
      ])

const SHARED_DIGEST_BYTES = 16

const LOGIN_OUTCOMES = ['ok', 'wrong', 'wrong, now locked', 'locked', 'incomplete'] as const
export type LoginOutcome = (typeof LOGIN_OUTCOMES)[number]

/** The second factor presented at a login. */
export interface PresentedFactor {
  readonly totpId: string
  /** Time step of the presented one-time code; -1 if the code matches no step, null without a code. */
  readonly step: number | null
  /** Digest of the presented recovery code; null without one. */
  readonly recovery: Buffer | null
}

/** Returns a row if the login subject is locked. */
export const findLoginLock = (subject: Buffer): Query<{ locked: boolean }> =>
  sql.prepared('locked_login', z.object({ locked: z.boolean() }))`
    select true as locked from login_failure
    where subject = ${sql.binary(subject)} and locked_until > clock_timestamp()`

/**
 * Decides the outcome of a login after the password check and uses up the presented code. `subject` comes from {@link
 * deriveLoginSubject}.
 */
export const decideLogin = (
  subject: Buffer,
  matches: boolean,
  maxFailures: number,
  lockSeconds: number,
  factor: PresentedFactor | null = null,
): Query<{ outcome: LoginOutcome }> => {
  const recovery = factor?.recovery ?? null
  return sql.prepared('login_decide', z.object({ outcome: z.enum(LOGIN_OUTCOMES) }))`
    select login_decide(${sql.binary(subject)}, ${matches}, ${maxFailures}, make_interval(secs => ${lockSeconds}),
      ${factor?.totpId ?? null}::uuid, ${factor?.step ?? null}::bigint,
      ${recovery === null ? null : sql.binary(recovery)}::bytea) as outcome`
}

/** Removes the locks and failures of an address and its known devices. `address` is the digest of the address. */
export const unlockLogin = (address: Buffer): Query<unknown> => {
  const shared = address.subarray(0, SHARED_DIGEST_BYTES)
  const [first, last] = [0x00, 0xff].map((byte) =>
    Buffer.concat([shared, Buffer.alloc(SHARED_DIGEST_BYTES, byte)]),
  )
  return sql.type(z.unknown())`
    delete from login_failure where subject between ${sql.binary(first!)} and ${sql.binary(last!)}`
}

/** Deletes expired webhook rates and returns their number. */
export const deleteExpiredWebhookRates = (batch: number): Query<{ count: number }> =>
  deleteExpiredRows(sql.fragment`webhook_rate`, sql.fragment`account_id, host`, batch)

/** Deletes expired request counts and returns their number. */
export const deleteExpiredRequestCounts = (batch: number): Query<{ count: number }> =>
  deleteExpiredRows(sql.fragment`request_limit`, sql.fragment`name, subject`, batch)

/** Deletes login failures older than `keepSeconds`, unless they still lock a login; returns their number. */
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
