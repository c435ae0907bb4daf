import { z } from 'zod'
import { JsonText, noRows, type Query, sql } from '../db.ts'
import type { IgnoreReason } from './payments.ts'

/** Writes to payments by tasks and the webhook. `payments/functions/` has the rules. */

/** Applies changes that the provider reported, in the format of `tasks/payments/facts.ts`. */
export const applyChanges = (changes: readonly object[]): Query<unknown> =>
  sql.prepared('payment_apply', noRows)`select payment_apply(${JSON.stringify(changes)}::jsonb)`

// Events.

export interface NewEvent {
  readonly id: string
  readonly type: string
  /** Time of the event, in seconds since the epoch. */
  readonly created: number
  readonly data: unknown
}

/** Counts an event that is ignored for `reason`. */
export const countIgnoredEvent = (reason: IgnoreReason, type: string): Query<unknown> =>
  sql.prepared('payment_ignored_event_count', noRows)`
    insert into payment_ignored_event as i (reason, events, last_type) values (${reason}, 1, ${type})
    on conflict on constraint payment_ignored_event_pkey do update
    set events = i.events + 1, last_type = excluded.last_type, last_received_at = excluded.last_received_at`

const StoredEvent = z.object({ fresh: z.boolean(), job_id: z.string().nullable() })

/**
 * Stores an event once. `fresh` is true if the event needs a job. Otherwise `job_id` is the job that is working on it,
 * or null once it is applied.
 */
export const storeEvent = (event: NewEvent): Query<z.output<typeof StoredEvent>> =>
  sql.prepared('payment_event_store', StoredEvent)`
    select fresh, job_id from payment_event_store(${event.id}, ${event.type}, to_timestamp(${event.created}::float8),
      ${JSON.stringify(event.data)}::jsonb)`

export const linkEventToJob = (id: string, jobId: string): Query<unknown> =>
  sql.prepared('payment_event_tie', noRows)`update payment_event set job_id = ${jobId}::uuid where id = ${id}`

const PendingEvent = z.object({ type: z.string(), at: z.number(), data: z.unknown() })

/** Returns an event that is not applied yet, otherwise no row. */
export const findPendingEvent = (id: string): Query<z.output<typeof PendingEvent>> =>
  sql.prepared('payment_event_pending', PendingEvent)`
    select type, extract(epoch from created_at)::bigint as at, data from payment_event where id = ${id} and applied_at is null`

/** Applies a stored event and clears its data. `applied` is false if it had already been applied. */
export const applyStoredEvent = (id: string, changes: readonly object[]): Query<{ applied: boolean }> =>
  sql.prepared('payment_event_apply', z.object({ applied: z.boolean() }))`
    select payment_event_apply(${id}, ${JSON.stringify(changes)}::jsonb) as applied`

/** Returns the second of the newest report about a subscription. */
export const findLastReport = (subscription: string): Query<{ at: number | null }> =>
  sql.prepared('payment_subscription_reported', z.object({ at: z.number().nullable() }))`
    select (facts #>> '{reported,1}')::bigint as at from payment_subscription
    where provider_subscription_id = ${subscription}`

const UnappliedEvent = z.object({ id: z.string(), type: z.string(), created: z.number(), data: z.unknown() })

/** Locks and returns unapplied events without a live job, oldest first. */
export const lockUnappliedEvents = (max: number): Query<z.output<typeof UnappliedEvent>> =>
  sql.type(UnappliedEvent)`
    select e.id, e.type, extract(epoch from e.created_at)::bigint as created, e.data from payment_event e
    where e.applied_at is null and not exists (
      select from job where job.id = e.job_id and job.status in ('scheduled', 'available', 'running'))
    order by e.received_at limit ${max} for update of e skip locked`

/** Returns those of the given events that are not stored yet. */
export const listUnknownEvents = (ids: readonly string[]): Query<{ id: string }> =>
  sql.type(z.object({ id: z.string() }))`
    select given as id from unnest(${sql.array(ids, 'text')}) given
    where not exists (select from payment_event e where e.id = given)`

const ReconciledTime = z.object({ now: z.number(), at: z.number().nullable() })

// Ignores a stored time in the future, left by a clock that was ahead. Otherwise, reconciliation would stop until that
// time.
const PLAUSIBLE_TIME_CONDITION = sql.fragment`r.read_until < now() + interval '10 minutes'`

/**
 * Returns the current time, and the time up to which the provider's events have been read (null if never). Both are in
 * seconds since the epoch.
 */
export const getReconciledTime = (): Query<z.output<typeof ReconciledTime>> =>
  sql.type(ReconciledTime)`
    select floor(extract(epoch from now()))::float8 as now,
      (select extract(epoch from r.read_until)::float8 from payment_reconciliation r where ${PLAUSIBLE_TIME_CONDITION}) as at`

export const setReconciledTime = (seconds: number): Query<unknown> =>
  sql.type(noRows)`
    insert into payment_reconciliation as r (read_until) values (to_timestamp(${seconds}::float8))
    on conflict on constraint payment_reconciliation_pkey do update
    set read_until = greatest(case when ${PLAUSIBLE_TIME_CONDITION} then r.read_until end, excluded.read_until)`

// Customers.

const Payer = z.object({
  id: z.number(),
  email: z.string(),
  full_name: z.string().nullable(),
  provider_customer_id: z.string().nullable(),
})

/** Returns an account as a payer. `provider_customer_id` is null until the account is a customer at the provider. */
export const findPayer = (userId: number): Query<z.output<typeof Payer>> =>
  sql.type(Payer)`
    select a.id, a.email, a.full_name, c.provider_customer_id
    from account a left join payment_customer c on c.user_id = a.id where a.id = ${userId} and a.deleted_at is null`

/** Links a provider's customer to an account, even if an event has already stored that customer without an account. */
export const linkCustomer = (userId: number, providerCustomerId: string): Query<unknown> =>
  sql.type(noRows)`
    insert into payment_customer as c (user_id, provider_customer_id) values (${userId}, ${providerCustomerId})
    on conflict on constraint payment_customer_provider_customer_id_key do update
    set user_id = excluded.user_id where c.user_id is null`

/** Replaces a customer that the provider no longer has. Later events about the former customer apply to the new one. */
export const replaceCustomer = (userId: number, former: string, providerCustomerId: string): Query<unknown> =>
  sql.type(noRows)`
    with replaced as (
      update payment_customer set provider_customer_id = ${providerCustomerId}
      where user_id = ${userId} and provider_customer_id = ${former} returning id
    )
    insert into payment_customer (provider_customer_id, replaced_by) select ${former}, id from replaced`

/** Returns the provider's customer id of an account; no row if the account is not a customer. */
export const findCustomerByAccount = (userId: number): Query<{ provider_customer_id: string }> =>
  sql.type(z.object({ provider_customer_id: z.string() }))`
    select provider_customer_id from payment_customer where user_id = ${userId}`

// Refunds.

const ReservedRefund = z.object({
  refund_id: z.number().nullable(),
  problem: z.enum(['status', 'amount']).nullable(),
  status: z.string(),
  available: z.number(),
  granted: z.number().nullable(),
  currency: z.string().nullable(),
  account_id: z.number().nullable(),
})

/** Reserves an amount of a payment for a refund; null reserves the rest. No row if the owner has no such payment. */
export const reserveRefund = (
  id: number,
  ownerId: number | null,
  amount: number | null,
  reason: string | null,
): Query<z.output<typeof ReservedRefund>> =>
  sql.type(ReservedRefund)`
    select refund_id, problem, status, available, granted, currency, account_id
    from payment_refund_reserve(${id}, ${ownerId}::int, ${ownerId === null}, ${amount}::bigint, ${reason}::text)`

export const linkRefundToJob = (refundId: number, jobId: string): Query<unknown> =>
  sql.type(noRows)`update payment_transaction set job_id = ${jobId}::uuid where id = ${refundId}`

const Refund = z.object({
  id: z.number(),
  amount: z.number(),
  reason: z.string().nullable(),
  provider_refund_id: z.string().nullable(),
  refusal: z.object({ code: z.string(), detail: z.string() }).nullable(),
  job_id: z.string().nullable(),
  charge: z.string().nullable(),
  payment_intent: z.string().nullable(),
  invoice: z.string().nullable(),
  session: z.string().nullable(),
  /** The payments of an invoice that several payments paid, with their amounts; otherwise null. */
  payments: z.unknown(),
})
export type Refund = z.output<typeof Refund>

/** Returns a refund and the ids of its payment. */
export const findRefund = (id: number): Query<Refund> =>
  sql.type(Refund)`
    select r.id, r.amount, r.reason, r.provider_refund_id, r.facts #> '{refusal,1}' as refusal, r.job_id,
      c.provider_charge_id as charge, c.provider_payment_intent_id as payment_intent,
      c.provider_invoice_id as invoice, c.provider_session_id as session, c.facts #> '{payments,1}' as payments
    from payment_transaction r join payment_transaction c on c.id = r.charge_id where r.id = ${id}`

/**
 * Releases the amount that is reserved for a refused refund. Stores the reason, so that a retry gets the same response.
 * Changes nothing if the provider has accepted the refund.
 */
export const refuseRefund = (id: number, refusal: { code: string; detail: string }): Query<unknown> =>
  sql.type(noRows)`
    with charge as materialized (
      select c.id from payment_transaction r join payment_transaction c on c.id = r.charge_id where r.id = ${id} for update of c)
    update payment_transaction r set facts = payment_join(r.facts, jsonb_build_object(
      'outcome', jsonb_build_array('0', 'failed'), 'refusal', jsonb_build_array('0', ${JSON.stringify(refusal)}::jsonb)))
    from charge where r.id = ${id} and r.charge_id = charge.id and not r.shown`

/** Returns the public JSON of the transaction with a provider id. */
export const findTransactionJson = (providerId: string): Query<{ json: string }> =>
  sql.type(JsonText)`
    select payment_transaction_json(t)::text as json
    from payment_transaction t join payment_reference p on p.transaction_id = t.id where p.provider_id = ${providerId}`

const RefundId = z.object({ id: z.number() })

/**
 * Returns pending refunds. Omits those without an answer whose job may still get one: it has not ended, or less than
 * `graceSeconds` ago. The refund that was looked up longest ago comes first.
 */
export const listUnsettledRefunds = (graceSeconds: number, max: number): Query<{ id: number }> =>
  sql.type(RefundId)`
    select t.id from payment_transaction t left join job on job.id = t.job_id
    where t.charge_id is not null and t.status = 'pending'
      and (t.shown or job.id is null or job.finished_at < now() - make_interval(secs => ${graceSeconds}::float8))
    order by t.looked_up_at nulls first, t.id limit ${max}`

/** Stores that a refund was looked up. Returns whether its state is final. */
export const markLookedUp = (id: number): Query<{ settled: boolean }> =>
  sql.type(z.object({ settled: z.boolean() }))`
    update payment_transaction set looked_up_at = now() where id = ${id} returning status <> 'pending' as settled`

/** Returns paid invoices whose payments are unknown. They count as revenue once they are known. */
export const listUnlinkedInvoices = (max: number): Query<{ invoice: string }> =>
  sql.type(z.object({ invoice: z.string() }))`
    select provider_invoice_id as invoice from payment_transaction
    where unlinked and provider_invoice_id is not null order by id limit ${max}`

/** Prunes refused refunds whose job is gone, since no retry can then need the stored response; returns their number. */
export const deleteRefusedRefunds = (batch: number): Query<{ count: number }> =>
  sql.type(z.object({ count: z.number() }))`
    with refused as (
      delete from payment_transaction where id in (
        select t.id from payment_transaction t
        where t.charge_id is not null and not t.shown and t.status = 'failed'
          and not exists (select from job where job.id = t.job_id) limit ${batch})
      returning 1
    )
    select count(*)::int as count from refused`

// Subscriptions.

const Subscription = z.object({
  id: z.number(),
  provider_subscription_id: z.string(),
  status: z.string(),
  plan_name: z.string(),
  cancel_at_period_end: z.boolean(),
  account_id: z.number().nullable(),
})

/** Returns a subscription of an owner and its account; a null owner matches any. */
export const findOwnedSubscription = (
  id: number,
  ownerId: number | null,
): Query<z.output<typeof Subscription>> =>
  sql.type(Subscription)`
    select s.id, s.provider_subscription_id, s.status, s.plan_name, s.cancel_at_period_end, c.user_id as account_id
    from payment_subscription s left join payment_customer c on c.id = s.customer_id
    where s.id = ${id} and (${ownerId === null} or c.user_id = ${ownerId}::int)`

/**
 * Returns a subscription of an account that may charge it for a price, other than `except`. One whose first payment is
 * open does not count. `isRunning` of the tasks has the same rule.
 */
export const findRunningSubscription = (
  userId: number,
  priceId: string,
  except: number | null = null,
): Query<{ id: number }> =>
  sql.type(z.object({ id: z.number() }))`
    select s.id from payment_subscription s
    where s.customer_id = (select c.id from payment_customer c where c.user_id = ${userId})
      and s.status not in ('canceled', 'incomplete') and s.facts #> '{prices,1}' @> to_jsonb(${priceId}::text)
      and s.id is distinct from ${except}::bigint
    order by s.id limit 1`

/** Returns the subscriptions of an account that will renew: neither canceled nor set to end with their period. */
export const listRunningSubscriptions = (userId: number): Query<{ provider_subscription_id: string }> =>
  sql.type(z.object({ provider_subscription_id: z.string() }))`
    select s.provider_subscription_id from payment_subscription s
    where s.customer_id = (select c.id from payment_customer c where c.user_id = ${userId})
      and s.status <> 'canceled' and not s.cancel_at_period_end
    order by s.id`

/** Returns the public JSON of a subscription. */
export const findSubscriptionJson = (id: number): Query<{ json: string }> =>
  sql.type(JsonText)`
    select payment_subscription_json(s)::text as json from payment_subscription s where s.id = ${id}`

const SubscriptionState = z.object({ status: z.string(), cancel_at_period_end: z.boolean() })

export const findSubscriptionState = (id: number): Query<z.output<typeof SubscriptionState>> =>
  sql.type(SubscriptionState)`select status, cancel_at_period_end from payment_subscription where id = ${id}`
