import { z } from 'zod'
import { nothing, type Query, sql } from './db.ts'
import type { ReadStatement } from './reader.ts'

/** Accounts, their sessions and refresh tokens. */

const ACCOUNT_JSON = `json_build_object(
  'id', id, 'email', email, 'full_name', full_name, 'is_active', is_active, 'is_verified', is_verified, 'role', role,
  'last_login', iso(last_login), 'created_at', iso(created_at), 'updated_at', iso(updated_at))`

/** One account as clients see it: $1 id. */
export const readAccount: ReadStatement = {
  name: 'account',
  text: `select ${ACCOUNT_JSON}::text from account where id = $1::int`,
}

/** What decides access: role and activity. $1 id. */
export const readCaller: ReadStatement = {
  name: 'caller',
  text: `select json_build_object('role', role, 'is_active', is_active)::text from account where id = $1::int`,
}

const Credentials = z.object({
  id: z.number(),
  password_hash: z.string(),
  role: z.string(),
  is_active: z.boolean(),
})

/** What a login is checked against. */
export const credentials = (email: string): Query<z.output<typeof Credentials>> =>
  sql.prepared('credentials', Credentials)`
    select id, password_hash, role, is_active from account where email = ${email}`

const FIRST_ACCOUNT_LOCK = 7_236_501_145

/** Whether there is any active account yet; while there is none, registrations wait for each other. */
export const anyAccount = (): Query<{ any: boolean }> =>
  sql.prepared(
    'any_account',
    z.object({ any: z.boolean() }),
  )`select exists (select from account where is_active) as any`

export const lockFirstAccount = (): Query<unknown> =>
  sql.type(nothing)`select pg_advisory_xact_lock(${FIRST_ACCOUNT_LOCK})`

export interface NewAccount {
  readonly email: string
  readonly passwordHash: string
  readonly fullName: string | null
  readonly role: 'user' | 'moderator' | 'admin'
  readonly isActive: boolean
}

const Inserted = z.object({ id: z.number(), role: z.string(), json: z.string() })

export const insertAccount = (account: NewAccount): Query<z.output<typeof Inserted>> =>
  sql.type(Inserted)`
    insert into account (email, password_hash, full_name, role, is_active)
    values (${account.email}, ${account.passwordHash}, ${account.fullName}, ${account.role}, ${account.isActive})
    returning id, role, json_build_object(
      'id', id, 'email', email, 'full_name', full_name, 'is_active', is_active, 'is_verified', is_verified, 'role', role,
      'last_login', iso(last_login), 'created_at', iso(created_at), 'updated_at', iso(updated_at))::text as json`

/** Makes an account an active admin, as `ADMIN_EMAIL` asks; its password stays when it already exists. */
export const upsertAdmin = (email: string, passwordHash: string): Query<{ id: number; created: boolean }> =>
  sql.type(z.object({ id: z.number(), created: z.boolean() }))`
    insert into account (email, password_hash, role, is_verified) values (${email}, ${passwordHash}, 'admin', true)
    on conflict on constraint account_email_key do update set role = 'admin', is_active = true, updated_at = now()
      where account.role <> 'admin' or not account.is_active
    returning id, xmax = 0 as created`

/** Begins a session: its family row and first refresh token. */
export const insertSession = (
  sessionId: string,
  accountId: number,
  digest: Buffer,
  lifetimeSeconds: number,
): Query<unknown> =>
  sql.prepared('insert_session', nothing)`
    with family as (
      insert into session (id, account_id) values (${sessionId}::uuid, ${accountId}) returning id
    )
    insert into refresh_token (digest, session_id, expires_at)
    select ${sql.binary(digest)}, id, now() + make_interval(secs => ${lifetimeSeconds}) from family`

export const touchLogin = (accountId: number): Query<unknown> =>
  sql.prepared('touch_login', nothing)`update account set last_login = now() where id = ${accountId}`

const Refreshed = z.object({ account_id: z.number(), session_id: z.string(), role: z.string() })

/** Exchanges a refresh token; no row when it may not be. */
export const refreshSession = (
  presented: Buffer,
  successor: Buffer,
  lifetimeSeconds: number,
): Query<z.output<typeof Refreshed>> =>
  sql.prepared('session_refresh', Refreshed)`
    select account_id, session_id, role
    from session_refresh(${sql.binary(presented)}, ${sql.binary(successor)}, make_interval(secs => ${lifetimeSeconds}))`

/** Revokes the session that a refresh token or an access token belongs to; either may be absent. */
export const revokeSession = (digest: Buffer | null, sessionId: string | null): Query<unknown> =>
  sql.type(nothing)`
    update session set revoked_at = now()
    where revoked_at is null and (id = ${sessionId}::uuid
      or id = (select session_id from refresh_token where digest = ${digest === null ? null : sql.binary(digest)}))`

/** Removes refresh tokens past their time, and sessions left without any; answers the number of tokens. */
export const deleteExpiredRefreshTokens = (batch: number): Query<{ count: number }> =>
  sql.type(z.object({ count: z.number() }))`
    with expired as (
      delete from refresh_token where digest in (
        select digest from refresh_token where expires_at < now() order by expires_at limit ${batch})
      returning session_id, digest
    ), emptied as (
      delete from session where id in (select session_id from expired) and not exists (
        select from refresh_token t where t.session_id = session.id and t.digest not in (select digest from expired))
    )
    select count(*)::int as count from expired`
