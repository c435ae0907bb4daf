import { z } from 'zod'
import { noRows, type Query, sql } from '../db.ts'
import { buildArrayText, type PageValues } from '../reads/lists.ts'
import type { ReadStatement } from '../reads/reader.ts'
import { deleteExpiredRows } from '../retention/expired.ts'

/** Identities at an OpenID Connect issuer, and sign-ins that wait for their second step. */

// Time to enter a one-time code after the issuer has answered.
const LOGIN_SECONDS = 300

export interface NewOidcLogin {
  readonly digest: Buffer
  readonly issuer: string
  readonly subject: string
  /** Address that the issuer has verified; null if there is none. */
  readonly email: string | null
  readonly fullName: string | null
}

/** Stores the claims of a person whom the issuer has signed in. */
export const insertOidcLogin = ({ digest, issuer, subject, email, fullName }: NewOidcLogin): Query<unknown> =>
  sql.type(noRows)`
    insert into oidc_login (digest, issuer, subject, email, full_name, expires_at)
    values (${sql.binary(digest)}, ${issuer}, ${subject}, ${email}, ${fullName},
      now() + make_interval(secs => ${LOGIN_SECONDS}))
    on conflict on constraint oidc_login_pkey do nothing`

const Login = z.object({
  issuer: z.string(),
  subject: z.string(),
  email: z.string().nullable(),
  full_name: z.string().nullable(),
})
export type OidcLogin = z.output<typeof Login>

/** Finds the claims of a sign-in; no row if it is unknown, used or expired. */
export const findOidcLogin = (digest: Buffer): Query<z.output<typeof Login>> =>
  sql.type(Login)`
    select issuer, subject, email, full_name from oidc_login
    where digest = ${sql.binary(digest)} and expires_at > now()`

/** Uses up a sign-in. If two calls run concurrently, one gets the row. */
export const consumeOidcLogin = (digest: Buffer): Query<{ found: boolean }> =>
  sql.type(z.object({ found: z.boolean() }))`
    delete from oidc_login where digest = ${sql.binary(digest)} and expires_at > now() returning true as found`

/** Prunes expired sign-ins; returns their number. */
export const deleteExpiredOidcLogins = (batch: number): Query<{ count: number }> =>
  deleteExpiredRows(sql.fragment`oidc_login`, sql.fragment`digest`, batch)

/** Finds the account of an identity. */
export const findIdentityAccount = (issuer: string, subject: string): Query<{ account_id: number }> =>
  sql.type(z.object({ account_id: z.number() }))`
    select i.account_id from oidc_identity i join account a on a.id = i.account_id and a.deleted_at is null
    where i.issuer = ${issuer} and i.subject = ${subject}`

export interface NewIdentity {
  readonly id: string
  readonly accountId: number
  readonly issuer: string
  readonly subject: string
  readonly email: string | null
}

/**
 * Links an identity to an account, or records its use. No row if the identity belongs to another account, or the
 * account to another identity of the issuer. The caller must have locked the account.
 */
export const linkIdentity = (identity: NewIdentity): Query<{ added: boolean }> =>
  sql.type(z.object({ added: z.boolean() }))`
    with used as (
      update oidc_identity set last_used_at = now(), email = coalesce(${identity.email}, email)
      where issuer = ${identity.issuer} and subject = ${identity.subject} and account_id = ${identity.accountId}
      returning id
    ), added as (
      insert into oidc_identity (id, account_id, issuer, subject, email, last_used_at)
      select ${identity.id}::uuid, ${identity.accountId}, ${identity.issuer}, ${identity.subject}, ${identity.email}, now()
      where not exists (select from used)
      on conflict do nothing returning id
    )
    select false as added from used union all select true from added`

export const IDENTITY_ORDER = { 'i.id': 'uuid' } as const

/** The identities of an account, newest first. */
export const readIdentities: ReadStatement<[account: number, ...page: PageValues]> = {
  name: 'oidc_identities',
  text: buildArrayText({
    table: 'oidc_identity',
    row: 'i',
    parameters: 1,
    where: 'i.account_id = $1::int',
    order: IDENTITY_ORDER,
    hasPageNumbers: false,
    direction: 'desc',
    item: 'oidc_identity_json(i)',
  }),
}

/** Unlinks an identity; no row if the account does not have it. */
export const deleteIdentity = (accountId: number, id: string): Query<{ issuer: string }> =>
  sql.type(z.object({ issuer: z.string() }))`
    delete from oidc_identity where id = ${id}::uuid and account_id = ${accountId} returning issuer`
