import { z } from 'zod'
import type { Transaction as DatabaseTransaction } from '../../../sql/db.ts'
import { type ErrorCode, fail } from '../../../sql/errors.ts'
import { linkRefundToJob, reserveRefund } from '../../../sql/payments/changes.ts'
import { refundPayment } from '../../../tasks/payments/refund.task.ts'
import type { Transaction } from '../../../tasks/payments/shapes.ts'
import { enqueue, type JobRef } from '../../../tasks/task.ts'
import type { Caller } from '../../pipeline/access/auth.ts'
import type { Input } from '../../pipeline/route.ts'
import { appendAuditEvent } from '../../pipeline/write/audit.ts'
import { PROVIDER_ERRORS, type RowParams, requireProvider } from './shapes.ts'

// The provider accepts no larger amount.
const MAX_AMOUNT = 999_999_999_999

export const Refund = z
  .strictObject({
    amount: z.int().min(1).max(MAX_AMOUNT).optional(),
    // The provider stores at most 500 characters.
    reason: z.string().trim().min(1).max(500).optional(),
  })
  .meta({ id: 'RefundRequest' })

export const REFUND_DESCRIPTION = `Without an amount, refunds the remaining amount. The reason is \
\`requested_by_customer\`, \`duplicate\`, \`fraudulent\`, or a note. Returns the refund, which is a separate transaction.`

export const REFUND_ERRORS = [
  'transaction.missing',
  'transaction.not_refundable',
  'transaction.refund_too_large',
  ...PROVIDER_ERRORS,
] as const satisfies readonly ErrorCode[]

type RefundInput = Input<z.output<typeof RowParams>, undefined, z.output<typeof Refund>, Caller> & {
  readonly tx: DatabaseTransaction
}

/** Reserves the amount of a refund of the owner's payment, and enqueues its job. A null owner matches any. */
export async function requestRefund(
  input: RefundInput,
  ownerId: number | null,
): Promise<JobRef<Transaction>> {
  const { params, body, caller, edge, tx, requestId } = input
  const { amount = null, reason = null } = body
  const reserved = await tx.maybeOne(reserveRefund(params.id, ownerId, amount, reason))
  if (reserved === null) throw fail('transaction.missing')
  const { refund_id, problem, status, available, granted, currency, account_id: accountId } = reserved
  if (problem === 'status') throw fail('transaction.not_refundable', { status })
  if (refund_id === null) throw fail('transaction.refund_too_large', { available: Math.max(0, available) })
  requireProvider(edge.settings)
  const ref = await enqueue(
    tx,
    refundPayment,
    { refund_id, transaction_id: params.id },
    { ownerId: caller.ownerId, requestId, settings: edge.settings },
  )
  await tx.run(linkRefundToJob(refund_id, ref.jobId))
  const data = {
    transaction_id: params.id,
    refund_id,
    ...{ amount: granted, currency, reason },
    before: { status, refundable: available },
    after: { refundable: available - granted! },
  }
  await tx.run(appendAuditEvent(input, 'payment.refund_requested', { accountId, data }))
  return ref
}
