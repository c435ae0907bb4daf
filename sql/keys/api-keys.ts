import { z } from 'zod'
import { JsonText, noRows, type Query, sql } from '../db.ts'
import { buildVisibleQuery, type OrganizationViewer } from '../orgs/orgs.ts'
import { buildArrayText, type PageValues } from '../reads/lists.ts'
import type { ReadStatement } from '../reads/reader.ts'

/** Queries about API keys, their last use and their request allowance. */

/** Ids of the key with a digest and of its account. `readAccountState` decides if the key is still valid. */
export const readApiKey: ReadStatement<[digest: string]> = {
  name: 'api_key',
  text: `select concat(id, ' ', account_id) from api_key where digest = decode($1, 'hex')`,
}

export const API_KEY_ORDER = { 'k.id': 'uuid' } as const

/** The keys of an account, newest first. */
export const readApiKeys: ReadStatement<[account: number, ...page: PageValues]> = {
  name: 'api_keys',
  text: buildArrayText({
    table: 'api_key',
    row: 'k',
    parameters: 1,
    where: 'k.account_id = $1::int',
    order: API_KEY_ORDER,
    hasPageNumbers: false,
    direction: 'desc',
    item: 'api_key_json(k)',
  }),
}

/** The keys of an organization, newest first. Only its admins and owners may see them. */
export const readOrganizationKeys: ReadStatement<[...OrganizationViewer, ...page: PageValues]> = {
  name: 'organization_keys',
  text: buildVisibleQuery(
    ['owner', 'admin'],
    buildArrayText({
      table: 'api_key',
      row: 'k',
      parameters: 2,
      where: 'k.organization_id = $1::int',
      order: API_KEY_ORDER,
      hasPageNumbers: false,
      direction: 'desc',
      item: 'api_key_json(k)',
    }),
  ),
}

export interface NewApiKey {
  readonly id: string
  readonly accountId: number
  readonly organizationId: number | null
  readonly name: string
  readonly digest: Buffer
  /** Last characters of the key, by which its owner recognizes it. */
  readonly hint: string
  readonly scopes: readonly string[]
  /** Expiry time in ISO 8601; null means that the key never expires. */
  readonly expiresAt: string | null
}

export const insertApiKey = (key: NewApiKey): Query<{ json: string }> =>
  sql.type(JsonText)`
    insert into api_key (id, account_id, organization_id, name, digest, hint, scopes, expires_at)
    values (${key.id}::uuid, ${key.accountId}, ${key.organizationId}, ${key.name}, ${sql.binary(key.digest)}, ${key.hint},
      ${sql.array([...key.scopes], 'text')}, ${key.expiresAt}::timestamptz)
    returning api_key_json(api_key)::text as json`

/** Reads an API key as public JSON. */
export const readKeyJson = (id: string): Query<{ json: string }> =>
  sql.type(JsonText)`select api_key_json(k)::text as json from api_key k where id = ${id}::uuid`

/** The data of the audit event of a key. */
const AUDITED_KEY = sql.fragment`
  jsonb_build_object('key', id, 'name', name, 'scopes', scopes, 'expires_at', iso(expires_at))`

const OwnedKey = z.object({
  account_id: z.number(),
  organization_id: z.number().nullable(),
  audited: z.record(z.string(), z.unknown()),
})

/** Reads the owners of a key, and the data of its audit event. No row if the key does not exist. */
export const findOwnedKey = (id: string): Query<z.output<typeof OwnedKey>> =>
  sql.type(OwnedKey)`
    select account_id, organization_id, ${AUDITED_KEY} as audited from api_key where id = ${id}::uuid`

const AuditData = z.record(z.string(), z.unknown())
const MemberCredentials = z.object({ keys: z.array(AuditData), webhooks: z.array(AuditData) })

/** Returns the audit data of the API keys and webhook endpoints that end with a membership. */
export const listMemberCredentials = (
  organizationId: number,
  userId: number,
): Query<z.output<typeof MemberCredentials>> =>
  sql.type(MemberCredentials)`
    select array(select ${AUDITED_KEY} from api_key
        where organization_id = ${organizationId} and account_id = ${userId} order by id) as keys,
      array(select jsonb_build_object('webhook', id, 'url', url, 'events', events) from webhook_endpoint
        where organization_id = ${organizationId} and account_id = ${userId} and deleted_at is null order by id) as webhooks`

/** Deletes a key. A trigger then notifies every edge process. No row if the key was already gone. */
export const deleteApiKey = (id: string): Query<{ id: string }> =>
  sql.type(z.object({ id: z.string() }))`delete from api_key where id = ${id}::uuid returning id`

/** Records that keys were used. Skips locked keys, and keys whose use was recorded in the last 30 s. */
export const recordKeyUse = (ids: readonly string[]): Query<unknown> =>
  sql.type(noRows)`
    update api_key set last_used_at = now() where id in (
      select id from api_key
      where id = any(${sql.array([...ids], 'uuid')}) and coalesce(last_used_at < now() - interval '30 seconds', true)
      order by id for no key update skip locked)`

const GrantedRequests = z.object({ granted: z.number(), remaining: z.number(), reset_ms: z.number() })

/**
 * Grants an edge up to `wanted` of the `max` requests that a key may make per period of `seconds`. A period begins with
 * the first request after the previous period. `remaining` is the number of requests that can still be granted.
 */
export const reserveRequests = (
  keyId: string,
  max: number,
  seconds: number,
  wanted: number,
): Query<z.output<typeof GrantedRequests>> =>
  sql.prepared('api_key_reserve', GrantedRequests)`
    insert into api_key_allowance as a (key_id, began_at, taken, granted)
    values (${keyId}::uuid, clock_timestamp(), least(${wanted}::int, ${max}::int), least(${wanted}::int, ${max}::int))
    on conflict on constraint api_key_allowance_pkey do update set (began_at, taken, granted) = (
      select case when is_over then excluded.began_at else a.began_at end, before + given, given
      from (select a.began_at + make_interval(secs => ${seconds}) <= excluded.began_at) period(is_over),
        lateral (select case when is_over then 0 else a.taken end) used(before),
        lateral (select least(${wanted}::int, greatest(0, ${max}::int - before))) grant_of(given))
    returning granted, greatest(0, ${max}::int - taken) as remaining,
      ceil(extract(epoch from began_at + make_interval(secs => ${seconds}) - clock_timestamp()) * 1000)::int as reset_ms`

/** Prunes keys that expired over 30 days ago. Returns the number deleted. */
export const deleteExpiredApiKeys = (batch: number): Query<{ count: number }> =>
  sql.type(z.object({ count: z.number() }))`
    with expired as (
      delete from api_key where id in (
        select id from api_key where expires_at < now() - interval '30 days' order by expires_at limit ${batch}
        for update skip locked)
      returning 1
    )
    select count(*)::int as count from expired`
