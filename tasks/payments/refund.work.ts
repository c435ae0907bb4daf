import { type ErrorCode, Failure, fail, restoreFailure } from '../../sql/errors.ts'
import {
  applyChanges,
  findRefund,
  findTransactionJson,
  type Refund,
  refuseRefund,
} from '../../sql/payments/changes.ts'
import type { TaskContext } from '../context.ts'
import { choosePayment, type ResolvedPayments, resolvePayments } from './payment-id.ts'
import { isKnownReason, JOB_METADATA_KEY, type ObjectSnapshot } from './provider.ts'
import { distinctIds } from './reading.ts'
import { toRefundChange } from './refunds.ts'
import { Transaction } from './shapes.ts'

/** Runs `payments.refund`. */
export async function run(
  ctx: TaskContext,
  { refund_id }: { readonly refund_id: number },
): Promise<Transaction> {
  const refund = await ctx.db.maybeOne(findRefund(refund_id))
  if (refund === null) throw fail('transaction.missing')
  if (refund.refusal !== null) throw restoreFailure(refund.refusal)
  const id = refund.provider_refund_id ?? (await requestRefund(ctx, refund))
  const { json } = await ctx.db.one(findTransactionJson(id))
  return Transaction.parse(JSON.parse(json))
}

/** Requests the refund, stores the provider's answer and returns the provider's refund id. */
async function requestRefund(ctx: TaskContext, refund: Refund): Promise<string> {
  const isFirst = ctx.job.attempt === 1 && ctx.job.id === refund.job_id
  const { answer, changes } = await createRefundAtProvider(ctx, refund).catch(async (error) => {
    if (isFirst && error instanceof Failure && REFUSAL_CODES.has(error.code)) {
      const { code, detail } = error
      await ctx.runFenced((tx) => tx.run(refuseRefund(refund.id, { code, detail })))
    }
    throw error
  })
  const change = toRefundChange(answer.object, answer.at)
  if (change === null) throw fail('payment.failed', { reason: 'unexpected response' })
  // Add the ids from the refund's row, because the answer may name the payment by an id that is not stored.
  const ids = distinctIds(refund.charge, refund.payment_intent, ...change.ids)
  const linked = { ...change, ids, request: refund.job_id }
  await ctx.runFenced((tx) => tx.run(applyChanges([...changes, linked])))
  return change.id
}

// Errors that prove that the provider created no refund, if they occur on the first attempt. On a later attempt they
// prove nothing: an earlier attempt may have succeeded, perhaps with another API key. The amount then stays reserved
// until `payments.reconcile` looks the refund up.
const REFUSAL_CODES: ReadonlySet<string> = new Set([
  'payment.not_configured',
  'payment.key',
  'payment.rejected',
  'payment.declined',
] satisfies ErrorCode[])

async function createRefundAtProvider(
  { providers, job, signal }: TaskContext,
  { id: _, job_id, amount, reason, ...ids }: Refund,
): Promise<{ answer: ObjectSnapshot; changes: ResolvedPayments['changes'] }> {
  const { payments, changes } = await resolvePayments(providers.payments, ids, signal)
  const payment = await choosePayment(providers.payments, payments, amount, signal)
  const requestId = job_id ?? job.id
  const note = reason === null || isKnownReason(reason) ? {} : { note: reason }
  const metadata = { [JOB_METADATA_KEY]: requestId, ...note }
  const answer = await providers.payments.createRefund(
    { payment, amount, reason, metadata },
    { key: `${requestId}:refund`, signal },
  )
  return { answer, changes }
}
