import { z } from 'zod'
import { JsonText, type Query, sql } from '../db.ts'
import type { ReadStatement } from '../reads/reader.ts'
import { deleteExpiredRows } from '../retention/expired.ts'

/** Changes of an account's email address, which both addresses must confirm. */

/** The two addresses that must confirm a change. */
export const ADDRESS_SIDES = ['old', 'new'] as const
export type AddressSide = (typeof ADDRESS_SIDES)[number]

export interface NewEmailChange {
  readonly id: string
  readonly accountId: number
  readonly email: string
  readonly sessionId: string | null
  readonly digests: Readonly<Record<AddressSide, Buffer>>
  readonly lifetimeSeconds: number
}

/** Begins a change, which replaces the account's pending one. The caller must have locked the account. */
export const beginEmailChange = (change: NewEmailChange): Query<{ json: string }> =>
  sql.type(JsonText)`
    insert into email_change as c (id, account_id, email, session_id, old_digest, new_digest, expires_at)
    values (${change.id}::uuid, ${change.accountId}, ${change.email}, ${change.sessionId}::uuid,
      ${sql.binary(change.digests.old)}, ${sql.binary(change.digests.new)},
      now() + make_interval(secs => ${change.lifetimeSeconds}))
    on conflict on constraint email_change_account_id_key do update set id = excluded.id, email = excluded.email,
      session_id = excluded.session_id, old_digest = excluded.old_digest, new_digest = excluded.new_digest,
      old_confirmed_at = null, new_confirmed_at = null, created_at = now(), expires_at = excluded.expires_at
    returning email_change_json(c)::text as json`

/** The pending change of an account as public JSON. */
export const readEmailChange: ReadStatement<[account: number]> = {
  name: 'email_change',
  text: `select email_change_json(c)::text from email_change c where c.account_id = $1::int and c.expires_at > now()`,
}

const PendingEmailChange = z.object({
  account_id: z.number(),
  old_email: z.string(),
  new_email: z.string(),
  full_name: z.string().nullable(),
  is_confirmed: z.boolean(),
  /** Digest of the token of this address. */
  digest: z.instanceof(Uint8Array),
  /** True if another account has the new address. */
  is_taken: z.boolean(),
})

/** Reads the data for the mail to one of the addresses. No row if the change is no longer pending. */
export const findPendingEmailChange = (
  id: string,
  side: AddressSide,
): Query<z.output<typeof PendingEmailChange>> =>
  sql.type(PendingEmailChange)`
    select c.account_id, a.email as old_email, c.email as new_email, a.full_name,
      case ${side} when 'old' then c.old_confirmed_at else c.new_confirmed_at end is not null as is_confirmed,
      case ${side} when 'old' then c.old_digest else c.new_digest end as digest,
      exists (select from account other where other.email = c.email) as is_taken
    from email_change c join account a on a.id = c.account_id and a.deleted_at is null
    where c.id = ${id}::uuid and c.expires_at > now()`

const ConfirmedEmailChange = z.object({
  account_id: z.number(),
  side: z.enum(ADDRESS_SIDES),
  outcome: z.enum(['waiting', 'changed', 'taken']),
  old_email: z.string(),
  new_email: z.string(),
  session_id: z.string().nullable(),
})

/** Confirms a change with the token of one address. No row if the token is unknown, used or expired. */
export const confirmEmailChange = (digest: Buffer): Query<z.output<typeof ConfirmedEmailChange>> =>
  sql.type(ConfirmedEmailChange)`
    select account_id, side, outcome, old_email, new_email, session_id from email_change_confirm(${sql.binary(digest)})`

const EndedEmailChange = z.object({ account_id: z.number(), email: z.string(), side: z.enum(ADDRESS_SIDES) })

/** Refuses a change with the token of either address. No row if the token is unknown or expired. */
export const refuseEmailChange = (digest: Buffer): Query<z.output<typeof EndedEmailChange>> =>
  sql.type(EndedEmailChange)`
    delete from email_change c
    where ${sql.binary(digest)} in (c.old_digest, c.new_digest) and c.expires_at > now()
    returning account_id, email, case when old_digest = ${sql.binary(digest)} then 'old' else 'new' end as side`

/** Cancels the change of an account. No row if none is pending. */
export const cancelEmailChange = (accountId: number): Query<{ email: string }> =>
  sql.type(z.object({ email: z.string() }))`
    delete from email_change where account_id = ${accountId} and expires_at > now() returning email`

/** Prunes expired changes. Returns the number deleted. */
export const deleteExpiredEmailChanges = (batch: number): Query<{ count: number }> =>
  deleteExpiredRows(sql.fragment`email_change`, sql.fragment`id`, batch)
