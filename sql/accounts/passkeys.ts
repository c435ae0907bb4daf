import { z } from 'zod'
import { JsonText, noRows, type Query, sql } from '../db.ts'
import { buildArrayText, type PageValues } from '../reads/lists.ts'
import type { ReadStatement } from '../reads/reader.ts'
import { deleteExpiredRows } from '../retention/expired.ts'

/** Passkeys and the challenges that their authenticators sign. */

/** Maximum number of passkeys of an account. */
export const MAX_PASSKEYS = 20
/** Lifetime of a challenge in seconds. */
export const CHALLENGE_SECONDS = 300

export const PASSKEY_ORDER = { 'p.id': 'uuid' } as const

/** The passkeys of an account, newest first. */
export const readPasskeys: ReadStatement<[account: number, ...page: PageValues]> = {
  name: 'passkeys',
  text: buildArrayText({
    table: 'passkey',
    row: 'p',
    parameters: 1,
    where: 'p.account_id = $1::int',
    order: PASSKEY_ORDER,
    hasPageNumbers: false,
    direction: 'desc',
    item: 'passkey_json(p)',
  }),
}

/** Stores a challenge. `accountId` is the account that registers a passkey; null for a sign-in. */
export const insertChallenge = (challenge: Buffer, accountId: number | null): Query<unknown> =>
  sql.type(noRows)`
    insert into passkey_challenge (challenge, account_id, expires_at)
    values (${sql.binary(challenge)}, ${accountId}, now() + make_interval(secs => ${CHALLENGE_SECONDS}))`

const ChallengeFound = z.object({ found: z.boolean() })

/**
 * Consumes a challenge, even if the caller's check then fails. No row if the challenge is unknown, expired or meant for
 * another purpose.
 */
export const consumeChallenge = (challenge: Buffer, accountId: number | null): Query<{ found: boolean }> =>
  sql.type(ChallengeFound)`
    delete from passkey_challenge
    where challenge = ${sql.binary(challenge)} and account_id is not distinct from ${accountId}::int and expires_at > now()
    returning true as found`

const CredentialId = z.object({ credential_id: z.instanceof(Uint8Array), transports: z.array(z.string()) })

/** Returns the credentials of an account. An authenticator that has one of them refuses to create a second passkey. */
export const listCredentialIds = (accountId: number): Query<z.output<typeof CredentialId>> =>
  sql.type(
    CredentialId,
  )`select credential_id, transports from passkey where account_id = ${accountId} order by id`

export interface NewPasskey {
  readonly id: string
  readonly accountId: number
  readonly credentialId: Buffer
  readonly publicKey: Buffer
  readonly counter: number
  readonly transports: readonly string[]
  readonly name: string
  readonly isSynced: boolean
}

/**
 * Adds a passkey.
 *
 * @throws passkey.exists if an account already has the credential.
 */
export const insertPasskey = (passkey: NewPasskey): Query<{ json: string }> =>
  sql.type(JsonText)`
    insert into passkey (id, account_id, credential_id, public_key, counter, transports, name, is_synced)
    values (${passkey.id}::uuid, ${passkey.accountId}, ${sql.binary(passkey.credentialId)}, ${sql.binary(passkey.publicKey)},
      ${passkey.counter}::bigint, ${sql.array([...passkey.transports], 'text')}, ${passkey.name}, ${passkey.isSynced})
    returning passkey_json(passkey)::text as json`

export const renamePasskey = (accountId: number, id: string, name: string): Query<{ json: string }> =>
  sql.type(JsonText)`
    update passkey set name = ${name} where id = ${id}::uuid and account_id = ${accountId}
    returning passkey_json(passkey)::text as json`

const Id = z.object({ id: z.string() })

export const deletePasskey = (accountId: number, id: string): Query<{ name: string }> =>
  sql.type(
    z.object({ name: z.string() }),
  )`delete from passkey where id = ${id}::uuid and account_id = ${accountId} returning name`

const KnownPasskey = z.object({
  id: z.string(),
  account_id: z.number(),
  public_key: z.instanceof(Uint8Array),
  counter: z.number(),
})

/** Returns the passkey with a credential id; no row if no account has it. */
export const findPasskey = (credentialId: Buffer): Query<z.output<typeof KnownPasskey>> =>
  sql.type(KnownPasskey)`
    select p.id, p.account_id, p.public_key, p.counter::float8 as counter
    from passkey p join account a on a.id = p.account_id and a.deleted_at is null
    where p.credential_id = ${sql.binary(credentialId)}`

/**
 * Records a sign-in with a passkey. No row if the passkey is gone or its counter has not advanced; counter 0 means that
 * the authenticator has none.
 */
export const recordPasskeyUse = (id: string, counter: number, isSynced: boolean): Query<{ id: string }> =>
  sql.type(Id)`
    update passkey set counter = ${counter}::bigint, is_synced = ${isSynced}, last_used_at = now()
    where id = ${id}::uuid and (counter < ${counter}::bigint or (counter = 0 and ${counter}::bigint = 0)) returning id`

const SignedInAccount = z.object({ role: z.string(), is_active: z.boolean() })

/** Records a sign-in without a password. See `recordLogin` for sign-ins with one. */
export const recordPasskeyLogin = (id: number): Query<z.output<typeof SignedInAccount>> =>
  sql.type(SignedInAccount)`
    update account set last_login = case when is_active then now() else last_login end
    where id = ${id} and deleted_at is null returning role, is_active`

/** Prunes expired challenges; returns their number. */
export const deleteExpiredChallenges = (batch: number): Query<{ count: number }> =>
  deleteExpiredRows(sql.fragment`passkey_challenge`, sql.fragment`challenge`, batch)
