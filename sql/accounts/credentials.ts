import { z } from 'zod'
import { noRows, type Query, sql } from '../db.ts'
import { endSessions, invalidateMailedTokens } from './accounts.ts'

/** Everything that gives access to an account: sign-in factors, sessions, API keys, mailed tokens and webhook endpoints. */

/**
 * Locks the one-time codes and passkeys of an address. Sign-ins also acquire these locks, before the account's lock.
 */
export const lockFactors = (email: string): Query<unknown> =>
  sql.type(noRows)`
    select (select count(*) from (select from account_totp where account_id = a.id for update) code),
      (select count(*) from (select from passkey where account_id = a.id order by id for update) key)
    from account a where a.email = ${email}`

const buildIssuedCredentialDeletes = (accountId: number) => sql.fragment`
  keys as (delete from api_key where account_id = ${accountId}),
  passkeys as (delete from passkey where account_id = ${accountId}),
  codes as (delete from account_totp where account_id = ${accountId}),
  identities as (delete from oidc_identity where account_id = ${accountId}),
  changes as (delete from email_change where account_id = ${accountId}),
  endpoints as (
    update webhook_endpoint set is_active = false, deleted_at = now()
    where account_id = ${accountId} and deleted_at is null)`

/**
 * Ends all credentials of an account except its password. Called when the rightful owner takes over the account,
 * because a previous holder may have created any of them. The caller must have locked the factors, then the account.
 */
export const revokeCredentials = (accountId: number): Query<unknown> =>
  sql.type(noRows)`
    with ${buildIssuedCredentialDeletes(accountId)}, tokens as (${invalidateMailedTokens(accountId)})
    ${endSessions(accountId, null)}`

/** Ends the same credentials as {@link revokeCredentials}, except sessions and mailed tokens. */
export const revokeIssuedCredentials = (accountId: number): Query<unknown> =>
  sql.type(noRows)`with ${buildIssuedCredentialDeletes(accountId)} select`

/**
 * Deletes the API keys of an account and everything created with them, and ends its sessions. The caller must have
 * locked the account.
 */
export const revokeKeys = (accountId: number): Query<unknown> =>
  sql.type(noRows)`
    with keys as (delete from api_key where account_id = ${accountId})
    ${endSessions(accountId, null)}`

const TokenHolder = z.object({ account_id: z.number() })

/** Finds the account of a refresh token's live session. No row if the token is rotated, expired or revoked. */
export const findRefreshTokenHolder = (digest: Buffer): Query<z.output<typeof TokenHolder>> =>
  sql.type(TokenHolder)`
    select s.account_id from refresh_token t join session s on s.id = t.session_id
    where t.digest = ${sql.binary(digest)} and t.rotated_at is null and t.expires_at > now() and s.revoked_at is null`

/**
 * Checks that neither the session nor the API key has ended. A null id means that the caller has none. The caller must
 * have locked the account, because functions that end credentials hold the same lock.
 */
export const checkCredentialsAreLive = (
  sessionId: string | null,
  keyId: string | null,
): Query<{ live: boolean }> =>
  sql.type(z.object({ live: z.boolean() }))`
    select not exists (select from session where id = ${sessionId}::uuid and ended_at is not null)
      and (${keyId}::uuid is null or exists (
        select from api_key where id = ${keyId}::uuid and coalesce(expires_at > now(), true))) as live`
