import { z } from 'zod'
import { ACCOUNT_CHANGED_CHANNEL } from '../connections/notify.ts'
import { JsonText, noRows, type Query, sql } from '../db.ts'
import { buildArrayText, type PageValues } from '../reads/lists.ts'
import type { ReadStatement } from '../reads/reader.ts'
import { deleteExpiredRows } from '../retention/expired.ts'

/** Queries about accounts, their sessions and refresh tokens. */

/** One account as public JSON. */
export const readAccount: ReadStatement<[id: number]> = {
  name: 'account',
  text: `select account_json(account)::text from account where id = $1::int and deleted_at is null`,
}

/**
 * Everything that decides access: the account, its API keys, and an admin's second factors (null for other roles).
 * `ended` lists sessions that ended in the last 25 hours, because access tokens can outlive their session by up to a
 * day.
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

/** Sessions of an account that can still be refreshed, newest first. Flags the session `callersOwn` as `is_current`. */
export const readSessions: ReadStatement<[account: number, callersOwn: string | null, ...page: PageValues]> =
  {
    name: 'sessions',
    text: buildArrayText({
      table: 'session',
      row: 's',
      parameters: 2,
      // Few rows fail the last condition, because expired tokens are pruned every minute.
      where: 's.account_id = $1::int and s.revoked_at is null and t.expires_at > now()',
      order: SESSION_ORDER,
      hasPageNumbers: false,
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
 * Locks an account, which serializes additions under a quota. No row if the account is gone. Count existing rows in a
 * later statement, which sees the commit of the previous lock holder.
 */
export const lockAccount = (id: number): Query<{ id: number }> =>
  sql.type(z.object({ id: z.number() }))`
    select id from account where id = ${id} and deleted_at is null for no key update`

/** Notifies every edge process to drop its cached state of an account. */
export const notifyAccountChanged = (id: number): Query<unknown> =>
  sql.prepared('account_changed', z.unknown())`select pg_notify(${ACCOUNT_CHANGED_CHANNEL}, ${String(id)})`

const StoredTotp = z.object({ id: z.string(), secret: z.string() })
/** The confirmed one-time codes of an account, with their sealed secret. */
export type StoredTotp = z.output<typeof StoredTotp>

const TOTP_JSON = sql.fragment`case when t.id is not null then json_build_object('id', t.id, 'secret', t.secret) end`

const Credentials = z.object({
  id: z.number(),
  password_hash: z.string(),
  role: z.string(),
  is_active: z.boolean(),
  totp: StoredTotp.nullable(),
})

/** Reads the credentials to check a login against. `totp` is the second factor; null without one. */
export const findCredentialsByEmail = (email: string): Query<z.output<typeof Credentials>> =>
  sql.prepared('credentials', Credentials)`
    select a.id, a.password_hash, a.role, a.is_active, ${TOTP_JSON} as totp
    from account a left join account_totp t on t.account_id = a.id and t.confirmed_at is not null where a.email = ${email}`

const FIRST_ADMIN_LOCK = 7_236_501_145

/** Counts the active admins. While there is none, {@link lockFirstAdmin} serializes registrations that create one. */
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

const InsertedAccount = z.object({ id: z.number(), role: z.string(), json: z.string() })

export const insertAccount = (account: NewAccount): Query<z.output<typeof InsertedAccount>> =>
  sql.type(InsertedAccount)`
    insert into account (email, password_hash, full_name, role, is_active)
    values (${account.email}, ${account.passwordHash}, ${account.fullName}, ${account.role}, ${account.isActive})
    returning id, role, account_json(account)::text as json`

/** Sets the full name; null clears it. No row if the account is gone. */
export const updateAccount = (id: number, fullName: string | null): Query<{ json: string }> =>
  sql.type(JsonText)`
    update account set full_name = ${fullName}, updated_at = now() where id = ${id} and deleted_at is null
    returning account_json(account)::text as json`

const ActivatedAccount = z.object({ json: z.string(), restored: z.boolean() })

/** Activates an account and cancels its deletion if that is due, which `restored` tells. No row if the account is gone. */
export const activateAccount = (id: number): Query<z.output<typeof ActivatedAccount>> =>
  sql.type(ActivatedAccount)`
    with found as (
      select id, coalesce(deletion_at <= now(), false) as due from account where id = ${id} and deleted_at is null for no key update
    )
    update account a set is_active = true, deletion_at = case when found.due then null else a.deletion_at end,
      updated_at = case when a.is_active and not found.due then a.updated_at else now() end
    from found where a.id = found.id returning account_json(a)::text as json, found.due as restored`

const ChangedRole = z.object({ json: z.string(), former_role: z.string() })

/** Sets the role of an account, and returns the former one. @throws account.last_admin if no active admin would remain. */
export const setRole = (id: number, role: NewAccount['role']): Query<z.output<typeof ChangedRole>> =>
  sql.type(ChangedRole)`
    with found as (select id, role from account where id = ${id} and deleted_at is null for no key update)
    update account a set role = ${role}, updated_at = case when a.role = ${role} then a.updated_at else now() end
    from found where a.id = found.id returning account_json(a)::text as json, found.role as former_role`

/** Sets the password. No row if the account is gone. */
export const setPassword = (id: number, passwordHash: string): Query<{ id: number }> =>
  sql.type(z.object({ id: z.number() }))`
    update account set password_hash = ${passwordHash}, updated_at = now()
    where id = ${id} and deleted_at is null returning id`

/**
 * Locks an account and returns its address. No row if the account is gone or its password hash is not `knownHash`. A
 * null `knownHash` matches any hash.
 */
export const lockCredentials = (id: number, knownHash: string | null): Query<{ email: string }> =>
  sql.type(z.object({ email: z.string() }))`
    select email from account
    where id = ${id} and deleted_at is null and password_hash = coalesce(${knownHash}, password_hash) for no key update`

const OwnCredentials = z.object({
  email: z.string(),
  password_hash: z.string(),
  totp: StoredTotp.nullable(),
})

/** Reads the credentials with which a signed-in account proves its identity. */
export const findCredentialsById = (id: number): Query<z.output<typeof OwnCredentials>> =>
  sql.type(OwnCredentials)`
    select a.email, a.password_hash, ${TOTP_JSON} as totp
    from account a left join account_totp t on t.account_id = a.id and t.confirmed_at is not null
    where a.id = ${id} and a.deleted_at is null`

export type MailedTokenKind = 'reset' | 'verify' | 'sign_in'

const Recipient = z.object({
  id: z.number(),
  email: z.string(),
  full_name: z.string().nullable(),
  is_active: z.boolean(),
  is_verified: z.boolean(),
})

/** Reads the account that an email is addressed to. */
export const findRecipientById = (id: number): Query<z.output<typeof Recipient>> =>
  sql.type(
    Recipient,
  )`select id, email, full_name, is_active, is_verified from account where id = ${id} and deleted_at is null`

export const findRecipientByEmail = (email: string): Query<z.output<typeof Recipient>> =>
  sql.type(Recipient)`select id, email, full_name, is_active, is_verified from account where email = ${email}`

/**
 * Stores the digest of a token that is about to be mailed, and returns the digest that an earlier attempt stored, if any.
 * The token's lifetime starts now. No row if the account no longer has `address`, or if the recipient has already used
 * the token from an earlier attempt's email.
 */
export const insertMailedToken = (
  id: string,
  accountId: number,
  kind: MailedTokenKind,
  digest: Buffer,
  lifetimeSeconds: number,
  address: string | null = null,
): Query<{ digest: Uint8Array }> =>
  sql.type(z.object({ digest: z.instanceof(Uint8Array) }))`
    insert into account_token as t (id, account_id, kind, digest, expires_at)
    select ${id}::uuid, a.id, ${kind}, ${sql.binary(digest)}, now() + make_interval(secs => ${lifetimeSeconds})
    from account a where a.id = ${accountId} and (${address}::text is null or a.email = ${address}) for key share
    on conflict on constraint account_token_pkey do update set expires_at = excluded.expires_at where t.used_at is null
    returning digest`

const TokenOwner = z.object({ account_id: z.number(), email: z.string() })

/** Finds the owner of a token. No row if the token is unknown, used or expired. */
export const findMailedToken = (kind: MailedTokenKind, digest: Buffer): Query<z.output<typeof TokenOwner>> =>
  sql.type(TokenOwner)`
    select t.account_id, a.email from account_token t join account a on a.id = t.account_id and a.deleted_at is null
    where t.digest = ${sql.binary(digest)} and t.kind = ${kind} and t.expires_at > now() and t.used_at is null`

/**
 * Redeems a token and invalidates the account's other tokens of that kind. If two calls run concurrently, one gets the row.
 * Locks the account first, because redeeming two of its tokens concurrently would otherwise deadlock.
 */
export const redeemMailedToken = (
  kind: MailedTokenKind,
  digest: Buffer,
): Query<z.output<typeof TokenOwner>> =>
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

/** Marks the address as verified. Changes no row if it already is. */
export const markAddressVerified = (id: number): Query<unknown> =>
  sql.type(
    noRows,
  )`update account set is_verified = true, updated_at = now() where id = ${id} and not is_verified`

/** Prunes expired mailed tokens. Returns the number deleted. */
export const deleteExpiredMailedTokens = (batch: number): Query<{ count: number }> =>
  deleteExpiredRows(sql.fragment`account_token`, sql.fragment`id`, batch)

/** Invalidates every unused mailed token of an account. */
export const invalidateMailedTokens = (accountId: number): Query<unknown> =>
  sql.type(
    noRows,
  )`update account_token set used_at = now() where account_id = ${accountId} and used_at is null`

const UpsertedAdmin = z.object({
  id: z.number(),
  change: z.enum(['created', 'promoted', 'replaced']),
  /** Null for a new account. */
  former_role: z.string().nullable(),
})

/**
 * Makes an account an active admin. No row if it already is one. If its address is unverified, the account gets this
 * password and becomes verified (`replaced`). If the address is verified or `asItIs` is true, the account keeps its
 * password. The caller holds the lock of `lockFactors`.
 */
export const upsertAdmin = (
  email: string,
  passwordHash: string,
  asItIs = false,
): Query<z.output<typeof UpsertedAdmin>> =>
  sql.type(UpsertedAdmin)`
    insert into account (email, password_hash, role, is_verified) values (${email}, ${passwordHash}, 'admin', true)
    on conflict on constraint account_email_key do update set role = 'admin', is_active = true, updated_at = now(),
        is_verified = account.is_verified or not ${asItIs},
        password_hash = case when account.is_verified or ${asItIs} then account.password_hash else excluded.password_hash end
      where account.role <> 'admin' or not account.is_active or not (account.is_verified or ${asItIs})
    returning id, case when xmax = 0 then 'created' when password_hash = ${passwordHash} then 'replaced' else 'promoted' end as change,
      (select role from account where email = ${email}) as former_role`

/** Origin of a session. `place` comes from a trusted proxy, `device` from the user agent. */
export interface SessionOrigin {
  readonly address: string | null
  readonly place: string | null
  readonly userAgent: string | null
  readonly device: string | null
  /** True if the session began with a passkey. */
  readonly byPasskey?: boolean
}

/** Adds a session with its first refresh token. Returns the account's password hash. */
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

const LoggedInAccount = z.object({ role: z.string(), is_active: z.boolean() })

/** Credentials that a login was checked against. */
export interface CheckedLogin {
  readonly passwordHash: string
  /** The second factor; null if the account has none. */
  readonly totpId: string | null
  /** New hash of the same password, to store instead; null keeps the current one. */
  readonly rehashed?: string | null
}

/**
 * Records a login and blocks concurrent changes to the account until the commit. No row if the account is gone, or if
 * its password or second factor has changed since the check.
 */
export const recordLogin = (
  accountId: number,
  { passwordHash, totpId, rehashed = null }: CheckedLogin,
): Query<z.output<typeof LoggedInAccount>> =>
  sql.prepared('login_record', LoggedInAccount)`
    select role, is_active from login_record(${accountId}, ${passwordHash}, ${totpId}::uuid, ${rehashed})`

const RefreshedSession = z.object({
  account_id: z.number(),
  session_id: z.string(),
  role: z.string(),
  replayed: z.boolean(),
  seconds_left: z.number().nullable(),
})

/**
 * Exchanges a refresh token. No row if the exchange is not allowed. If `replayed` is true, the token had already been
 * used, and this call ended the session. A session lasts at most `longestSeconds`; null means no limit. `seconds_left`
 * is the session's remaining lifetime; null without a limit.
 */
export const refreshSession = (
  presented: Buffer,
  successor: Buffer,
  lifetimeSeconds: number,
  longestSeconds: number | null = null,
): Query<z.output<typeof RefreshedSession>> =>
  sql.prepared('session_refresh', RefreshedSession)`
    select account_id, session_id, role, replayed, seconds_left
    from session_refresh(${sql.binary(presented)}, ${sql.binary(successor)}, make_interval(secs => ${lifetimeSeconds}),
      make_interval(secs => ${longestSeconds}::float8))`

const EndedSession = z.object({ id: z.string(), account_id: z.number() })

/**
 * Revokes the session of a refresh token (by digest) or of an access token (by session id). Either may be null. Access
 * tokens stay valid until they expire.
 */
export const revokeSession = (
  digest: Buffer | null,
  sessionId: string | null,
): Query<z.output<typeof EndedSession>> =>
  sql.type(EndedSession)`
    update session set revoked_at = now()
    where revoked_at is null and (id = ${sessionId}::uuid
      or id = (select session_id from refresh_token where digest = ${digest === null ? null : sql.binary(digest)}))
      and exists (select from account a where a.id = account_id and a.deleted_at is null)
    returning id, account_id`

/** Finds an unrevoked session of an account that began within the last `seconds`. */
export const findRecentSession = (
  accountId: number,
  sessionId: string | null,
  seconds: number,
): Query<{ id: string }> =>
  sql.type(z.object({ id: z.string() }))`
    select id from session where id = ${sessionId}::uuid and account_id = ${accountId} and revoked_at is null
      and created_at > now() - make_interval(secs => ${seconds})`

/** Ends one session of an account, including its access tokens. No row if the account has no such live session. */
export const endSession = (accountId: number, sessionId: string): Query<z.output<typeof EndedSession>> =>
  sql.type(EndedSession)`
    update session set revoked_at = now(), ended_at = now()
    where id = ${sessionId}::uuid and account_id = ${accountId} and revoked_at is null
    returning id, account_id`

/** Ends all sessions of an account except `kept`, including their access tokens. If `kept` is null, ends them all. */
export const endSessions = (accountId: number, kept: string | null): Query<unknown> =>
  sql.type(noRows)`
    update session set revoked_at = coalesce(revoked_at, now()), ended_at = now()
    where account_id = ${accountId} and id is distinct from ${kept}::uuid and ended_at is null`
