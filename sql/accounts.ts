import { z } from 'zod'
import { JsonText, noRows, type Query, sql } from './db.ts'
import { arrayText, type PageValues } from './lists.ts'
import { ACCOUNT_CHANGED } from './notify.ts'
import type { ReadStatement } from './reader.ts'

/** Accounts, their sessions and refresh tokens. */

/** One account as clients see it. */
export const readAccount: ReadStatement<[id: number]> = {
  name: 'account',
  text: `select account_json(account)::text from account where id = $1::int and deleted_at is null`,
}

/**
 * What decides access: the account, its sessions that were ended while their access tokens may still be valid (the
 * longest-lived ones last a day), its API keys, and an admin's second factors (null for others).
 */
export const readAccountState: ReadStatement<[id: number]> = {
  name: 'account_state',
  text: `select json_build_object('account', account_json(account), 'ended', (
      select coalesce(json_agg(session.id), '[]') from session
      where account_id = account.id and ended_at > now() - interval '25 hours'), 'keys', (
      select coalesce(json_agg(json_build_object('id', k.id, 'scopes', k.scopes, 'organization_id', k.organization_id,
        'expires_at', extract(epoch from k.expires_at))), '[]') from api_key k
      where k.account_id = account.id and coalesce(k.expires_at > now(), true)),
      'factors', case when role = 'admin' then (select json_build_object('totp', exists (
          select from account_totp t where t.account_id = account.id and t.confirmed_at is not null),
        'sessions', coalesce(json_agg(s.id), '[]'))
        from session s where s.account_id = account.id and s.by_passkey and s.revoked_at is null) end)::text
    from account where id = $1::int`,
}

export const SESSION_ORDER = { 's.id': 'uuid' } as const

/** The sessions of an account that can still be refreshed, newest first; `callersOwn` is marked as current. */
export const readSessions: ReadStatement<[account: number, callersOwn: string | null, ...page: PageValues]> =
  {
    name: 'sessions',
    text: arrayText({
      table: 'session',
      row: 's',
      parameters: 2,
      // Those that have expired are deleted every minute.
      where: 's.account_id = $1::int and s.revoked_at is null and t.expires_at > now()',
      order: SESSION_ORDER,
      numbered: false,
      direction: 'desc',
      join: 'join refresh_token t on t.session_id = s.id and t.rotated_at is null',
      item: `json_build_object('id', s.id, 'created_at', iso(s.created_at),
      'last_used_at', iso(greatest(s.last_used_at, t.created_at)), 'expires_at', iso(t.expires_at),
      'address', s.address, 'place', s.place, 'last_address', coalesce(s.last_address, s.address),
      'last_place', case when s.last_address is null then s.place else s.last_place end,
      'user_agent', s.user_agent, 'device', s.device, 'is_current', s.id is not distinct from $2::uuid)`,
    }),
  }

/**
 * Has other additions to what an account may have so many of wait; no row when it is gone. What there is is counted after it, by
 * another statement, which sees what the previous holder of the lock has committed.
 */
export const lockAccount = (id: number): Query<{ id: number }> =>
  sql.type(z.object({ id: z.number() }))`
    select id from account where id = ${id} and deleted_at is null for no key update`

/** Tells every edge process to drop what it has cached about an account. */
export const accountChanged = (id: number): Query<unknown> =>
  sql.prepared('account_changed', z.unknown())`select pg_notify(${ACCOUNT_CHANGED}, ${String(id)})`

const Credentials = z.object({
  id: z.number(),
  password_hash: z.string(),
  role: z.string(),
  is_active: z.boolean(),
  totp_id: z.string().nullable(),
})

/** What a login is checked against; `totp_id` is its second factor. */
export const credentials = (email: string): Query<z.output<typeof Credentials>> =>
  sql.prepared('credentials', Credentials)`
    select a.id, a.password_hash, a.role, a.is_active, t.id as totp_id
    from account a left join account_totp t on t.account_id = a.id and t.confirmed_at is not null where a.email = ${email}`

const FIRST_ADMIN_LOCK = 7_236_501_145

/** How many active admins there are. While there is none, registrations that would make one wait for each other. */
export const countAdmins = (): Query<{ admins: number }> =>
  sql.prepared(
    'count_admins',
    z.object({ admins: z.int() }),
  )`select count(*)::int as admins from account where role = 'admin' and is_active`

export const lockFirstAdmin = (): Query<unknown> =>
  sql.type(noRows)`select pg_advisory_xact_lock(${FIRST_ADMIN_LOCK})`

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
    returning id, role, account_json(account)::text as json`

/** Sets the full name; null clears it. No row when the account is gone. */
export const updateAccount = (id: number, fullName: string | null): Query<{ json: string }> =>
  sql.type(JsonText)`
    update account set full_name = ${fullName}, updated_at = now() where id = ${id} and deleted_at is null
    returning account_json(account)::text as json`

/** Activates or deactivates an account. @throws account.last_admin when no active admin would be left. */
export const setActive = (id: number, active: boolean): Query<{ json: string }> =>
  sql.type(JsonText)`
    update account set is_active = ${active}, updated_at = case when is_active = ${active} then updated_at else now() end
    where id = ${id} and deleted_at is null returning account_json(account)::text as json`

/** @throws account.last_admin when no active admin would be left. */
export const setRole = (id: number, role: NewAccount['role']): Query<{ json: string }> =>
  sql.type(JsonText)`
    update account set role = ${role}, updated_at = case when role = ${role} then updated_at else now() end
    where id = ${id} and deleted_at is null returning account_json(account)::text as json`

const Left = z.object({
  inherited: z.array(z.object({ organization_id: z.number(), heir_id: z.number() })),
  deleted: z.array(z.object({ organization_id: z.number(), slug: z.string() })),
})
/** What became of the organizations that an account alone owned. */
export type Left = z.output<typeof Left>

/** How many organizations an account leaves in one transaction, which locks them. */
export const LEAVE_BATCH = 500

/**
 * Deletes an account for everybody; organizations that it alone owned pass to an heir or are deleted, at most `max` of
 * them. No row when it does not exist. What belongs to it is left to the task `accounts.purge`.
 * @throws account.last_admin when no active admin would be left.
 */
export const deleteAccount = (id: number, max = LEAVE_BATCH): Query<Left & { email: string }> =>
  sql.type(
    Left.extend({ email: z.string() }),
  )`select email, inherited, deleted from account_delete(${id}, ${max}::int)`

/** Takes a deleted account out of its next organizations, at most `max`; `organizations` is how many there were. */
export const leaveOrganizations = (id: number, max = LEAVE_BATCH): Query<Left & { organizations: number }> =>
  sql.type(Left.extend({ organizations: z.number() }))`
    select organizations, inherited, deleted from account_leave(${id}, ${max}::int)`

/** Sets the password; no row when the account is gone. */
export const setPassword = (id: number, passwordHash: string): Query<{ id: number }> =>
  sql.type(z.object({ id: z.number() }))`
    update account set password_hash = ${passwordHash}, updated_at = now()
    where id = ${id} and deleted_at is null returning id`

/**
 * The address of an account whose password is the one that was compared, null: whichever it is; no row when it is another by
 * now, or the account is gone. Other changes of the account wait.
 */
export const lockCredentials = (id: number, knownHash: string | null): Query<{ email: string }> =>
  sql.type(z.object({ email: z.string() }))`
    select email from account
    where id = ${id} and deleted_at is null and password_hash = coalesce(${knownHash}, password_hash) for no key update`

const Own = z.object({ email: z.string(), password_hash: z.string(), totp_id: z.string().nullable() })

/** What is checked when somebody who is signed in has to show that it is them. */
export const credentialsOf = (id: number): Query<z.output<typeof Own>> =>
  sql.type(Own)`
    select a.email, a.password_hash, t.id as totp_id
    from account a left join account_totp t on t.account_id = a.id and t.confirmed_at is not null
    where a.id = ${id} and a.deleted_at is null`

export type MailedKind = 'reset' | 'verify'

const Recipient = z.object({
  id: z.number(),
  email: z.string(),
  full_name: z.string().nullable(),
  is_active: z.boolean(),
  is_verified: z.boolean(),
})

/** The recipient of an email to an account. */
export const recipientById = (id: number): Query<z.output<typeof Recipient>> =>
  sql.type(
    Recipient,
  )`select id, email, full_name, is_active, is_verified from account where id = ${id} and deleted_at is null`

export const recipientByEmail = (email: string): Query<z.output<typeof Recipient>> =>
  sql.type(Recipient)`select id, email, full_name, is_active, is_verified from account where email = ${email}`

/**
 * Stores the digest of a token that is about to be mailed to an address, valid for its whole lifetime from now on; no row
 * when it was already used by the recipient of an earlier attempt's email, or when the account has another address by now.
 */
export const insertMailedToken = (
  id: string,
  accountId: number,
  kind: MailedKind,
  digest: Buffer,
  lifetimeSeconds: number,
  address: string | null = null,
): Query<{ id: string }> =>
  sql.type(z.object({ id: z.string() }))`
    insert into account_token as t (id, account_id, kind, digest, expires_at)
    select ${id}::uuid, a.id, ${kind}, ${sql.binary(digest)}, now() + make_interval(secs => ${lifetimeSeconds})
    from account a where a.id = ${accountId} and (${address}::text is null or a.email = ${address}) for key share
    on conflict on constraint account_token_pkey do update set expires_at = excluded.expires_at where t.used_at is null
    returning id`

const TokenOwner = z.object({ account_id: z.number(), email: z.string() })

/** The owner of a token; no row when it is unknown, used or expired. */
export const mailedToken = (kind: MailedKind, digest: Buffer): Query<z.output<typeof TokenOwner>> =>
  sql.type(TokenOwner)`
    select t.account_id, a.email from account_token t join account a on a.id = t.account_id and a.deleted_at is null
    where t.digest = ${sql.binary(digest)} and t.kind = ${kind} and t.expires_at > now() and t.used_at is null`

/**
 * Uses up a token, and with it every other one of its kind; of two concurrent uses one gets the row. Locks the account
 * first, or two of its tokens that are used concurrently would deadlock.
 */
export const useMailedToken = (kind: MailedKind, digest: Buffer): Query<z.output<typeof TokenOwner>> =>
  sql.type(TokenOwner)`
    with owner as materialized (
      select id, email from account
      where id = (select account_id from account_token where digest = ${sql.binary(digest)}) and deleted_at is null
      for no key update
    ), used as (
      update account_token t set used_at = now() from owner
      where t.account_id = owner.id and t.kind = ${kind} and t.used_at is null and exists (
        select from account_token given
        where given.digest = ${sql.binary(digest)} and given.kind = ${kind} and given.expires_at > now())
      returning t.digest
    )
    select owner.id as account_id, owner.email from owner
    where exists (select from used where digest = ${sql.binary(digest)})`

/** Notes that the owner of the address has proved it; touches no row when that is known. */
export const setVerified = (id: number): Query<unknown> =>
  sql.type(
    noRows,
  )`update account set is_verified = true, updated_at = now() where id = ${id} and not is_verified`

/** Deletes expired mailed tokens; returns how many. */
export const deleteExpiredMailedTokens = (batch: number): Query<{ count: number }> =>
  sql.type(z.object({ count: z.number() }))`
    with expired as (
      delete from account_token where id in (
        select id from account_token where expires_at < now() order by expires_at limit ${batch})
      returning 1
    )
    select count(*)::int as count from expired`

/** Invalidates every mailed token of an account that nobody has used yet. */
export const endMailedTokens = (accountId: number): Query<unknown> =>
  sql.type(
    noRows,
  )`update account_token set used_at = now() where account_id = ${accountId} and used_at is null`

const Admin = z.object({ id: z.number(), change: z.enum(['created', 'promoted', 'replaced']) })

/**
 * Makes an account an active admin; no row when it already is one. An account with an unverified address gets this
 * password and counts as verified: `replaced`. With `asItIs` it keeps its own, like one with a verified address.
 */
export const upsertAdmin = (
  email: string,
  passwordHash: string,
  asItIs = false,
): Query<z.output<typeof Admin>> =>
  sql.type(Admin)`
    insert into account (email, password_hash, role, is_verified) values (${email}, ${passwordHash}, 'admin', true)
    on conflict on constraint account_email_key do update set role = 'admin', is_active = true, updated_at = now(),
        is_verified = account.is_verified or not ${asItIs},
        password_hash = case when account.is_verified or ${asItIs} then account.password_hash else excluded.password_hash end
      where account.role <> 'admin' or not account.is_active or not (account.is_verified or ${asItIs})
    returning id, case when xmax = 0 then 'created' when password_hash = ${passwordHash} then 'replaced' else 'promoted' end as change`

/** Where a session was begun, and with what; `place` is what a trusted proxy says, `device` what the user agent says. */
export interface SessionOrigin {
  readonly address: string | null
  readonly place: string | null
  readonly userAgent: string | null
  readonly device: string | null
  /** True if it began with a passkey. */
  readonly byPasskey?: boolean
}

/** Begins a session: its family row and first refresh token; answers the password hash of the account. */
export const insertSession = (
  sessionId: string,
  accountId: number,
  digest: Buffer,
  lifetimeSeconds: number,
  origin: SessionOrigin,
): Query<{ password_hash: string }> =>
  sql.prepared('insert_session', z.object({ password_hash: z.string() }))`
    with family as (
      insert into session (id, account_id, address, place, user_agent, device, by_passkey)
      values (${sessionId}::uuid, ${accountId}, left(${origin.address}, 100), ${origin.place}, left(${origin.userAgent}, 300),
        ${origin.device}, ${origin.byPasskey === true}) returning id
    )
    insert into refresh_token (digest, session_id, expires_at)
    select ${sql.binary(digest)}, id, now() + make_interval(secs => ${lifetimeSeconds}) from family
    returning (select password_hash from account where id = ${accountId})`

const Touched = z.object({ role: z.string(), is_active: z.boolean() })

/** What a login was checked against. */
export interface CheckedLogin {
  readonly passwordHash: string
  /** Its second factor; null: it has none. */
  readonly totpId: string | null
  /** A hash of the same password that takes the place of that one. */
  readonly rehashed?: string | null
}

/**
 * Records a login, and makes concurrent changes to the account wait until it is committed. No row when the account is
 * gone, or when its password or second factor is no longer the one that was checked.
 */
export const touchLogin = (
  accountId: number,
  { passwordHash, totpId, rehashed = null }: CheckedLogin,
): Query<z.output<typeof Touched>> =>
  sql.prepared('login_touch', Touched)`
    select role, is_active from login_touch(${accountId}, ${passwordHash}, ${totpId}::uuid, ${rehashed})`

const Refreshed = z.object({
  account_id: z.number(),
  session_id: z.string(),
  role: z.string(),
  replayed: z.boolean(),
  seconds_left: z.number().nullable(),
})

/**
 * Exchanges a refresh token; no row when that is not allowed. A `replayed` one has just ended its session. A session lasts at most
 * `longestSeconds`, null: as long as it is used; `seconds_left` of it.
 */
export const refreshSession = (
  presented: Buffer,
  successor: Buffer,
  lifetimeSeconds: number,
  longestSeconds: number | null = null,
): Query<z.output<typeof Refreshed>> =>
  sql.prepared('session_refresh', Refreshed)`
    select account_id, session_id, role, replayed, seconds_left
    from session_refresh(${sql.binary(presented)}, ${sql.binary(successor)}, make_interval(secs => ${lifetimeSeconds}),
      make_interval(secs => ${longestSeconds}::float8))`

const Ended = z.object({ id: z.string(), account_id: z.number() })

/**
 * Revokes the session that a refresh token or an access token belongs to; either may be absent. Its access tokens stay
 * valid until they expire.
 */
export const revokeSession = (
  digest: Buffer | null,
  sessionId: string | null,
): Query<z.output<typeof Ended>> =>
  sql.type(Ended)`
    update session set revoked_at = now()
    where revoked_at is null and (id = ${sessionId}::uuid
      or id = (select session_id from refresh_token where digest = ${digest === null ? null : sql.binary(digest)}))
      and exists (select from account a where a.id = account_id and a.deleted_at is null)
    returning id, account_id`

/** A live session of an account that began at most so long ago; no row when it is older. */
export const recentSession = (
  accountId: number,
  sessionId: string | null,
  seconds: number,
): Query<{ id: string }> =>
  sql.type(z.object({ id: z.string() }))`
    select id from session where id = ${sessionId}::uuid and account_id = ${accountId} and revoked_at is null
      and created_at > now() - make_interval(secs => ${seconds})`

/** Ends one session of an account, including its access tokens; no row when the account has no such live session. */
export const endSession = (accountId: number, sessionId: string): Query<z.output<typeof Ended>> =>
  sql.type(Ended)`
    update session set revoked_at = now(), ended_at = now()
    where id = ${sessionId}::uuid and account_id = ${accountId} and revoked_at is null
    returning id, account_id`

/** Ends all sessions of an account, including their access tokens, except for one that may be kept. */
export const endSessions = (accountId: number, kept: string | null): Query<unknown> =>
  sql.type(noRows)`
    update session set revoked_at = coalesce(revoked_at, now()), ended_at = now()
    where account_id = ${accountId} and id is distinct from ${kept}::uuid and ended_at is null`
