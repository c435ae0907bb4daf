import { z } from 'zod'
import { noRows, type Query, sql } from '../db.ts'
import type { ReadStatement } from '../reads/reader.ts'

/** Second factor of accounts: one-time codes and recovery codes. A sign-in uses them up in `decideLogin`. */

/** State of the one-time codes of an account, and the number of its unused recovery codes. */
export const readTotp: ReadStatement<[account: number]> = {
  name: 'account_totp',
  text: `select json_build_object('is_on', confirmed_at is not null, 'confirmed_at', iso(confirmed_at),
      'recovery_codes_left', cardinality(recovery_codes))::text
    from account_totp where account_id = $1::int`,
}

const Totp = z.object({ id: z.string(), secret: z.string(), is_on: z.boolean() })

/** Finds the one-time codes of an account. The caller must have locked the account. */
export const findTotp = (accountId: number): Query<z.output<typeof Totp>> =>
  sql.type(
    Totp,
  )`select id, secret, confirmed_at is not null as is_on from account_totp where account_id = ${accountId}`

/** Starts the setup with a new sealed secret, which replaces an unconfirmed one. */
export const insertTotp = (id: string, accountId: number, secret: string): Query<unknown> =>
  sql.type(noRows)`
    insert into account_totp (id, account_id, secret) values (${id}::uuid, ${accountId}, ${secret})
    on conflict on constraint account_totp_account_id_key do update set id = excluded.id, secret = excluded.secret, created_at = now()
      where account_totp.confirmed_at is null`

/** Enables one-time codes. `step` is the time step of the confirming code, which cannot be used again. */
export const confirmTotp = (id: string, step: number, recoveryCodes: readonly Buffer[]): Query<unknown> =>
  sql.type(noRows)`
    update account_totp set confirmed_at = now(), last_step = ${step}::bigint, recovery_codes = ${toDigestArray(recoveryCodes)}
    where id = ${id}::uuid`

/** Replaces all recovery codes of an account. */
export const setRecoveryCodes = (id: string, recoveryCodes: readonly Buffer[]): Query<unknown> =>
  sql.type(
    noRows,
  )`update account_totp set recovery_codes = ${toDigestArray(recoveryCodes)} where id = ${id}::uuid`

/** Disables one-time codes. No row if they were not enabled. */
export const deleteTotp = (accountId: number): Query<{ id: string }> =>
  sql.type(z.object({ id: z.string() }))`
    delete from account_totp where account_id = ${accountId} and confirmed_at is not null returning id`

const toDigestArray = (all: readonly Buffer[]) => sql.array([...all], 'bytea')
