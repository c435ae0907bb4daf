import { z } from 'zod'
import { JsonText, noRows, type Query, sql } from '../db.ts'
import { buildVisibleQuery, type OrganizationViewer } from '../orgs/orgs.ts'
import { buildArrayText, type PageValues, pairConditions } from '../reads/lists.ts'
import type { ReadStatement } from '../reads/reader.ts'

/** Callers' webhook endpoints, their deliveries, and job callbacks. */

/** Types of events. `payment.changed` covers transactions, subscriptions and disputes. */
export const WEBHOOK_EVENTS = [
  'job.done',
  'job.failed',
  'job.cancelled',
  'batch.done',
  'document.read',
  'send.changed',
  'payment.changed',
  'post.published',
] as const
export type WebhookEvent = (typeof WEBHOOK_EVENTS)[number]

/** Type of the delivery that asks a receiver to echo a token. */
export const CHALLENGE_EVENT = 'webhook.challenge'

/** Type of the delivery that a caller sends to test an endpoint. */
export const TEST_EVENT = 'webhook.test'

/** Types of deliveries. Those of an endpoint itself are sent without a subscription. */
export const DELIVERY_TYPES = [...WEBHOOK_EVENTS, CHALLENGE_EVENT, TEST_EVENT] as const
export type DeliveryType = (typeof DELIVERY_TYPES)[number]

/** Number of consecutive failures after which an endpoint backs off. */
export const BACKOFF_FROM_FAILURES = 5

/** Number of hours for which the previous secret also signs after a change. */
export const PREVIOUS_SECRET_HOURS = 24

export const ENDPOINT_ORDER = { 'e.id': 'bigint' } as const

const buildEndpointList = (parameters: number, where: string): string =>
  buildArrayText({
    table: 'webhook_endpoint',
    row: 'e',
    parameters,
    where: `${where} and e.deleted_at is null`,
    order: ENDPOINT_ORDER,
    hasPageNumbers: false,
    direction: 'desc',
    item: 'webhook_endpoint_json(e)',
  })

/** The endpoints of an account, newest first. */
export const readEndpoints: ReadStatement<[account: number, ...page: PageValues]> = {
  name: 'webhook_endpoints',
  text: buildEndpointList(1, 'e.account_id = $1::int'),
}

/** The endpoints of the service, newest first, for its admins. */
export const readServiceEndpoints: ReadStatement<[...page: PageValues]> = {
  name: 'service_webhook_endpoints',
  text: buildEndpointList(0, 'e.account_id is null'),
}

/** The endpoints of an organization, newest first, for the organization's admins and owners. */
export const readOrganizationEndpoints: ReadStatement<[...OrganizationViewer, ...page: PageValues]> = {
  name: 'organization_webhook_endpoints',
  text: buildVisibleQuery(['owner', 'admin'], buildEndpointList(2, 'e.organization_id = $1::int')),
}

const MANAGED_CONDITION = 'webhook_can_manage(e, $2::int, $3::boolean, $4::int)'
/** A caller who may manage an endpoint, see `webhook_can_manage`. */
export type EndpointManager = [account: number | null, everything: boolean, organization: number | null]
type ManagedEndpoint = [endpoint: number, ...EndpointManager]

/**
 * Returns SQL that yields the given JSON, or `none` for callers who may manage an endpoint but not see its deliveries.
 */
const buildOwnerOnlyJson = (json: string): string =>
  `select case when $3::boolean or e.account_id = $2::int then (${json})::text else 'none' end
    from webhook_endpoint e where e.id = $1::bigint and ${MANAGED_CONDITION}`

export const readEndpoint: ReadStatement<ManagedEndpoint> = {
  name: 'webhook_endpoint',
  text: `select webhook_endpoint_json(e)::text from webhook_endpoint e where e.id = $1::bigint and ${MANAGED_CONDITION}`,
}

export const DELIVERY_ORDER = { 'd.id': 'bigint' } as const

/** Deliveries of an endpoint, newest first, filtered by status; null matches any status. */
export const readDeliveries: ReadStatement<[...ManagedEndpoint, status: string | null, ...page: PageValues]> =
  {
    name: 'webhook_deliveries',
    text: buildOwnerOnlyJson(
      buildArrayText({
        table: 'webhook_delivery',
        row: 'd',
        parameters: 5,
        where: pairConditions(['d.endpoint_id = $1::bigint'], ['$5::text is null', 'd.status = $5::text']),
        order: DELIVERY_ORDER,
        hasPageNumbers: false,
        direction: 'desc',
        item: 'webhook_delivery_json(d)',
      }),
    ),
  }

/** One delivery with its body and all responses. */
export const readDelivery: ReadStatement<[...ManagedEndpoint, delivery: number]> = {
  name: 'webhook_delivery',
  text: buildOwnerOnlyJson(
    `select webhook_delivery_json(d)::jsonb || jsonb_build_object('body', d.body, 'answers', d.answers)
    from webhook_delivery d where d.id = $5::bigint and d.endpoint_id = $1::bigint`,
  ),
}

export interface NewEndpoint {
  /** Null for an endpoint of the service. */
  readonly accountId: number | null
  readonly organizationId: number | null
  readonly url: string
  readonly host: string
  readonly events: readonly string[]
  readonly description: string | null
  /** The API key of the request; null for a session. */
  readonly keyId: string | null
  /** The sealed secret. */
  readonly secret: string
}

export const insertEndpoint = (e: NewEndpoint): Query<{ json: string }> =>
  sql.type(JsonText)`
    insert into webhook_endpoint (account_id, organization_id, url, host, events, description, secret, api_key_id, expires_at)
    values (${e.accountId}, ${e.organizationId}, ${e.url}, ${e.host}, ${sql.array([...e.events], 'text')}, ${e.description},
      ${e.secret}, ${e.keyId}::uuid, (select expires_at from api_key where id = ${e.keyId}::uuid))
    returning webhook_endpoint_json(webhook_endpoint)::text as json`

const EndpointRow = z.object({
  account_id: z.number().nullable(),
  organization_id: z.number().nullable(),
  url: z.string().nullable(),
  events: z.array(z.enum(WEBHOOK_EVENTS)),
  description: z.string().nullable(),
  is_active: z.boolean(),
})
export type OwnedEndpoint = z.output<typeof EndpointRow>

/** Locks an endpoint and returns it; no row if the caller may not manage it. */
export const lockManagedEndpoint = (
  id: number,
  [account, everything, organization]: EndpointManager,
): Query<OwnedEndpoint> =>
  sql.type(EndpointRow)`
    select e.account_id, e.organization_id, e.url, e.events, e.description, e.is_active from webhook_endpoint e
    where e.id = ${id} and webhook_can_manage(e, ${account}::int, ${everything}::boolean, ${organization}::int)
    for no key update`

export interface EndpointFields {
  readonly url?: string | undefined
  /** Host of `url`, required together with it. */
  readonly host?: string | undefined
  readonly events?: readonly string[] | undefined
  readonly description?: string | null | undefined
  readonly is_active?: boolean | undefined
}

/**
 * Changes an endpoint; absent fields keep their value. Activating it resets the backoff. A new URL must be verified
 * again.
 */
export const updateEndpoint = (id: number, fields: EndpointFields): Query<{ json: string }> =>
  sql.type(JsonText)`
    with moved as (
      update webhook_delivery d set host = ${fields.host ?? ''}
      where d.endpoint_id = ${id} and d.due_at is not null and d.host <> ${fields.host ?? ''} and ${fields.host !== undefined}
    )
    update webhook_endpoint e set updated_at = now(), url = coalesce(${fields.url ?? null}, e.url),
      host = coalesce(${fields.host ?? null}, e.host),
      proved_at = case when e.url is distinct from coalesce(${fields.url ?? null}, e.url) then null else e.proved_at end,
      events = coalesce(${fields.events === undefined ? null : sql.array([...fields.events], 'text')}, e.events),
      description = case when ${fields.description === undefined} then e.description else ${fields.description ?? null} end,
      is_active = coalesce(${fields.is_active ?? null}::boolean, e.is_active),
      disabled_at = case when ${fields.is_active ?? null}::boolean then null else e.disabled_at end,
      failures = case when ${fields.is_active ?? null}::boolean then 0 else e.failures end,
      failing_since = case when ${fields.is_active ?? null}::boolean then null else e.failing_since end,
      blocked_until = case when ${fields.is_active ?? null}::boolean then null else e.blocked_until end,
      paused_until = case when ${fields.is_active ?? null}::boolean or e.url is distinct from coalesce(${fields.url ?? null}, e.url)
        then null else e.paused_until end
    where e.id = ${id} and e.deleted_at is null returning webhook_endpoint_json(e)::text as json`

/** Replaces the secret of an endpoint with another sealed one, and returns the number of its secrets so far. */
export const rollSecret = (id: number, secret: string): Query<{ secret_version: number }> =>
  sql.type(z.object({ secret_version: z.number() }))`
    update webhook_endpoint set previous_secret = secret, secret = ${secret}, secret_version = secret_version + 1,
      secret_rolled_at = now(), updated_at = now()
    where id = ${id} and deleted_at is null returning secret_version`

/** Marks an endpoint as deleted. The pruner deletes its deliveries. */
export const markEndpointDeleted = (id: number): Query<{ id: number }> =>
  sql.type(z.object({ id: z.number() }))`
    update webhook_endpoint set is_active = false, deleted_at = now() where id = ${id} and deleted_at is null returning id`

const RedeliveredMessage = JsonText.extend({ type: z.enum(DELIVERY_TYPES) })

/** Redelivers a message, with attempts for another day; no row if the endpoint does not have the message. */
export const redeliverWebhook = (endpoint: number, id: number): Query<z.output<typeof RedeliveredMessage>> =>
  sql.type(RedeliveredMessage)`
    update webhook_delivery d set status = 'pending', due_at = now(), attempts = 0, ended_at = null
    where d.id = ${id} and d.endpoint_id = ${endpoint} returning d.type, webhook_delivery_json(d)::text as json`

/** A job callback: a URL to notify when the job ends. */
export interface JobCallback {
  readonly accountId: number
  readonly url: string
  readonly host: string
  /** The API key of the request; null for a session. */
  readonly keyId: string | null
  /** Sealed secret for the account's endpoint of callbacks, if this is the first one. */
  readonly secret: string
}

/** Adds a callback to a job of an account. */
export const addJobCallbacks = (
  jobIds: readonly string[],
  { accountId, url, host, keyId, secret }: JobCallback,
): Query<unknown> =>
  sql.type(z.unknown())`
    select webhook_callback_add(id, ${accountId}, ${url}, ${host}, ${keyId}::uuid, ${secret}) from unnest(${sql.array(jobIds, 'uuid')}) id`

const addMessage = (endpoint: number, type: DeliveryType, data: object): Query<{ json: string }> =>
  sql.type(JsonText)`
    insert into webhook_delivery as d (endpoint_id, type, body)
    select e.id, ${type}, webhook_body(${type}, now(), e.account_id, ${JSON.stringify(data)}::json)
    from webhook_endpoint e where e.id = ${endpoint}
    returning webhook_delivery_json(d)::text as json`

/** Adds a delivery that asks the receiver to echo a token; no row if too many deliveries are pending. */
export const addChallenge = (endpoint: number, token: string): Query<{ json: string }> =>
  addMessage(endpoint, CHALLENGE_EVENT, { challenge: token })

/** Adds a test delivery, with an example of an event or with nulls; no row if too many deliveries are pending. */
export const addTestDelivery = (
  endpoint: number,
  example: { readonly type: WebhookEvent | null; readonly data: unknown },
): Query<{ json: string }> => addMessage(endpoint, TEST_EVENT, example)

/** Marks an endpoint as verified, if it still has the URL at which its receiver echoed the token. */
export const markEndpointVerified = (id: number, url: string): Query<unknown> =>
  sql.type(noRows)`
    update webhook_endpoint set proved_at = now() where id = ${id} and url = ${url} and proved_at is null`

/**
 * Marks endpoints of expired API keys as deleted, and returns pairs of endpoint and host with due deliveries. Skips
 * disabled endpoints, and endpoints or hosts that back off.
 */
export const listDueEndpoints = (): Query<{ id: number; host: string }> =>
  sql.prepared('webhook_due', z.object({ id: z.number(), host: z.string() }))`
    with recursive expired as (
      update webhook_endpoint set is_active = false, deleted_at = now() where expires_at <= now() and deleted_at is null
    ), pending as (
      (select endpoint_id as id, host from webhook_delivery where due_at is not null order by endpoint_id, host limit 1)
      union all
      select following.* from pending p cross join lateral (
        select d.endpoint_id, d.host from webhook_delivery d
        where d.due_at is not null and (d.endpoint_id, d.host) > (p.id, p.host)
        order by d.endpoint_id, d.host limit 1) following
    )
    select e.id, p.host from pending p join webhook_endpoint e on e.id = p.id left join account a on a.id = e.account_id
    left join webhook_rate r on r.account_id = coalesce(e.account_id, 0) and r.host = p.host
    where e.is_active and coalesce(e.expires_at > now(), true) and coalesce(a.is_active, true)
      and coalesce(greatest(e.blocked_until, e.paused_until) <= now(), true) and coalesce(r.blocked_until <= now(), true)
      and exists (select from webhook_delivery d where d.endpoint_id = e.id and d.host = p.host and d.due_at <= now())`

const DueDeliveryRow = z.object({
  id: z.number(),
  message_id: z.string(),
  type: z.string(),
  url: z.string(),
  body: z.string(),
  account_id: z.number().nullable(),
  /** The sealed secrets that sign: the current one and, for a day after a change, the previous one. */
  secrets: z.array(z.string()),
  /** The database's time, in ms since the epoch. */
  at_ms: z.number(),
})
export type DueDelivery = z.output<typeof DueDeliveryRow>

/**
 * Rate limits for an account's deliveries to a host: `proved` if the account has a verified endpoint there, otherwise
 * `unproved`. Null means no limit.
 */
export interface WebhookRates {
  readonly verified: WebhookRate | null
  readonly unverified: WebhookRate | null
}
interface WebhookRate {
  readonly max: number
  readonly seconds: number
}

/** Claims due deliveries of an endpoint to a host within the rate limits, see `webhook_claim`. */
export const claimDeliveries = (
  endpoint: number,
  host: string,
  {
    max,
    holdSeconds,
    rates,
  }: { readonly max: number; readonly holdSeconds: number; readonly rates: WebhookRates },
): Query<DueDelivery> =>
  sql.prepared('webhook_claim', DueDeliveryRow)`
    select t.id, t.message_id, t.type, coalesce(t.url, e.url) as url, t.body, e.account_id,
      case when e.secret_rolled_at > now() - make_interval(hours => ${PREVIOUS_SECRET_HOURS}::int)
        then array[e.secret, e.previous_secret] else array[e.secret] end as secrets,
      floor(extract(epoch from clock_timestamp()) * 1000)::float8 as at_ms
    from webhook_claim(${endpoint}::bigint, ${host}, ${max}::int, ${BACKOFF_FROM_FAILURES}::int, ${holdSeconds}::float8,
      ${rates.verified?.max ?? 0}::int, ${rates.verified?.seconds ?? 1}::int, ${rates.unverified?.max ?? 0}::int,
      ${rates.unverified?.seconds ?? 1}::int) t
    join webhook_endpoint e on e.id = t.endpoint_id order by t.id`

export const WEBHOOK_OUTCOMES = ['delivered', 'pending', 'failed', 'disabled'] as const

/** The stored result of a delivery attempt. */
export interface DeliveryResult {
  /** Time of the attempt in ISO 8601 format. */
  readonly at: string
  readonly ms: number
  /** HTTP status; null if there was no response. */
  readonly status: number | null
  /** Seconds that the receiver asked to wait with `Retry-After`; absent if it did not. */
  readonly retry_after?: number
  /** The beginning of the response's body; null if there was no response. */
  readonly body: string | null
  /** Reason why there was no response; null if there was one. */
  readonly error: string | null
}

/**
 * Records an attempt and returns the resulting state of the delivery, see `webhook_settle`; null if the delivery
 * already had an outcome.
 */
export const recordDeliveryAttempt = (
  id: number,
  outcome: 'delivered' | 'failed' | 'gone',
  answer: DeliveryResult,
  waits: readonly number[],
): Query<{ end: (typeof WEBHOOK_OUTCOMES)[number] | null }> =>
  sql.type(z.object({ end: z.enum(WEBHOOK_OUTCOMES).nullable() }))`
    select webhook_settle(${id}::bigint, ${outcome}, ${JSON.stringify(answer)}::jsonb, ${sql.array([...waits], 'int4')},
      ${BACKOFF_FROM_FAILURES}) as end`

const DisabledEndpointMail = z.object({
  email: z.string(),
  full_name: z.string().nullable(),
  url: z.string(),
  failing_since: z.string(),
})

/** Returns the accounts to notify about an endpoint: its own, or all admins for an endpoint of the service. */
export const listEndpointOwners = (id: number): Query<{ id: number }> =>
  sql.type(z.object({ id: z.number() }))`
    select e.account_id as id from webhook_endpoint e where e.id = ${id} and e.account_id is not null
    union all
    select a.id from webhook_endpoint e join account a on a.role = 'admin' and a.is_active
    where e.id = ${id} and e.account_id is null`

/**
 * Returns the data for the email to an account about a disabled endpoint. No row if the endpoint is enabled again or
 * gone. No row if the account may no longer manage it.
 */
export const findDisabledEndpoint = (
  id: number,
  account: number,
): Query<z.output<typeof DisabledEndpointMail>> =>
  sql.type(DisabledEndpointMail)`
    select a.email, a.full_name, e.url, iso(coalesce(e.failing_since, e.disabled_at)) as failing_since
    from webhook_endpoint e join account a on a.id = ${account} and a.is_active
    where e.id = ${id} and e.disabled_at is not null and e.url is not null
      and case when e.account_id is null then a.role = 'admin' else a.id = e.account_id end`

/**
 * Deletes deliveries of deleted endpoints, and deleted endpoints that have no deliveries left; returns the number of
 * rows.
 */
export const purgeEndpoints = (batch: number): Query<{ count: number }> =>
  sql.type(z.object({ count: z.number() }))`
    with deliveries as (
      delete from webhook_delivery where id in (
        select d.id from webhook_endpoint e join webhook_delivery d on d.endpoint_id = e.id
        where e.deleted_at is not null limit ${batch})
      returning 1
    ), endpoints as (
      delete from webhook_endpoint e where e.deleted_at is not null
        and not exists (select from webhook_delivery d where d.endpoint_id = e.id)
      returning 1
    )
    select (select count(*) from deliveries)::int + (select count(*) from endpoints)::int as count`
