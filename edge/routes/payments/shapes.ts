import { z } from 'zod'
import type { Queries } from '../../../sql/db.ts'
import { type ErrorCode, fail } from '../../../sql/errors.ts'
import { findRunningSubscription } from '../../../sql/payments/changes.ts'
import { IGNORE_REASONS } from '../../../sql/payments/payments.ts'
import { Subscription, Transaction } from '../../../tasks/payments/shapes.ts'
import type { Settings } from '../../../tasks/platform/settings/settings.ts'
import { PageFields } from '../../pipeline/request/lists.ts'
import { LongRowId, Timestamp } from '../../pipeline/request/schemas.ts'
import { type Answer, answerJson } from '../../pipeline/route.ts'

/** Requests and responses of the payment routes; those of their jobs are in `tasks/payments/shapes.ts`. */

/** Maximum and default size of a page. */
export const PAGE_SIZES = { max: 200, fallback: 20 }

export const TransactionList = z
  .strictObject({ transactions: z.array(Transaction), ...PageFields })
  .meta({ id: 'TransactionList' })

export const SubscriptionList = z
  .strictObject({ subscriptions: z.array(Subscription), ...PageFields })
  .meta({ id: 'SubscriptionList' })

export const DISPUTE_STATUSES = [
  'warning_issued',
  'warning_closed',
  'needs_response',
  'under_review',
  'won',
  'lost',
  'charge_refunded',
] as const

export const Dispute = z
  .strictObject({
    id: z.int(),
    transaction_id: z.int().nullable(),
    provider_dispute_id: z.string(),
    status: z.enum(DISPUTE_STATUSES),
    reason: z.string(),
    amount: z.int(),
    currency: z.string().nullable(),
    evidence_due_by: Timestamp.nullable(),
    event_type: z.string(),
    created_at: Timestamp,
    updated_at: Timestamp,
  })
  .meta({ id: 'Dispute' })

export const DisputeList = z
  .strictObject({ disputes: z.array(Dispute), ...PageFields })
  .meta({ id: 'DisputeList' })

const Revenue = z.strictObject({ currency: z.string(), revenue_cents: z.int(), payments: z.int() })

const IgnoredEvents = z.strictObject({
  reason: z.enum(IGNORE_REASONS),
  events: z.int(),
  last_type: z.string(),
  last_received_at: Timestamp,
})

export const Summary = z
  .strictObject({
    provider: z.literal('stripe'),
    enabled: z.boolean(),
    is_test_mode: z.boolean(),
    total_transactions: z.int(),
    total_revenue_cents: z.int(),
    active_subscriptions: z.int(),
    currency: z.string(),
    per_currency: z.array(Revenue),
    ignored_events: z.array(IgnoredEvents),
    missing_rights: z.array(z.string()),
    unlinked_invoices: z.int(),
    may_refund: z.boolean().describe('True if the caller may refund the payments that are listed to them'),
  })
  .meta({ id: 'PaymentStatus' })

export const RevenueSeries = z
  .strictObject({
    currency: z.string(),
    days: z.int(),
    points: z.array(z.strictObject({ date: z.iso.date(), revenue_cents: z.int(), payments: z.int() })),
  })
  .meta({ id: 'RevenueSeries' })

/** The account that owns a row; null if there is none. Only admins see it. */
const AccountField = { account_id: z.int().nullable() }

export const AdminTransaction = Transaction.extend(AccountField).meta({ id: 'AdminTransaction' })
const AdminSubscription = Subscription.extend(AccountField).meta({ id: 'AdminSubscription' })
export const AdminDispute = Dispute.extend(AccountField).meta({ id: 'AdminDispute' })

export const AdminTransactionList = z
  .strictObject({ transactions: z.array(AdminTransaction), ...PageFields })
  .meta({ id: 'AdminTransactionList' })

export const AdminSubscriptionList = z
  .strictObject({ subscriptions: z.array(AdminSubscription), ...PageFields })
  .meta({ id: 'AdminSubscriptionList' })

export const AdminDisputeList = z
  .strictObject({ disputes: z.array(AdminDispute), ...PageFields })
  .meta({ id: 'AdminDisputeList' })

export const RowParams = z.object({ id: LongRowId })

/** Answers with JSON that PostgreSQL built. @throws fail(missing) if `text` is null. */
export function answerRow<T>(text: string | null, missing: ErrorCode): Answer<T> {
  if (text === null) throw fail(missing)
  return answerJson<T>(text)
}

/**
 * Requires that the account has no running subscription of a price, other than `except`.
 * @throws fail('subscription.running')
 */
export async function requireFirstSubscription(
  tx: Queries,
  ownerId: number | null,
  priceId: string,
  except: number | null = null,
): Promise<void> {
  const running =
    ownerId === null ? null : await tx.maybeOne(findRunningSubscription(ownerId, priceId, except))
  if (running !== null) throw fail('subscription.running', running)
}

/** @throws fail('payment.not_configured') */
export function requireProvider({ payments }: Settings): void {
  if (payments.secretKey === undefined) throw fail('payment.not_configured')
}

/** Errors of every job that calls the provider. */
export const PROVIDER_ERRORS = [
  'payment.not_configured',
  'payment.rejected',
  'payment.declined',
  'payment.key',
  'payment.failed',
] as const satisfies readonly ErrorCode[]
