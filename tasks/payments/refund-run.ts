import { type ErrorCode, Failure, fail, storedFailure } from '../../sql/errors.ts'
import {
  applyChanges,
  type Refund,
  refundById,
  refuseRefund,
  transactionJson,
} from '../../sql/payment-changes.ts'
import type { TaskContext } from '../context.ts'
import { type Resolved, resolvePayment } from './payment-id.ts'
import { type Answered, isKnownReason } from './provider.ts'
import { Transaction } from './shapes.ts'
import { REQUEST_KEY, refundChange } from './transactions.ts'

/** The work of `payments.refund`. */
export async function run(
  ctx: TaskContext,
  { refund_id }: { readonly refund_id: number },
): Promise<Transaction> {
  const asked = await ctx.db.maybeOne(refundById(refund_id))
  if (asked === null) throw fail('transaction.missing')
  if (asked.refusal !== null) throw storedFailure(asked.refusal)
  const id = asked.provider_refund_id ?? (await request(ctx, asked))
  const { json } = await ctx.db.one(transactionJson(id))
  return Transaction.parse(JSON.parse(json))
}

/** Asks the provider, stores its answer, and returns the id of the refund. */
async function request(ctx: TaskContext, asked: Refund): Promise<string> {
  const isFirst = ctx.job.attempt === 1 && ctx.job.id === asked.job_id
  const { answered, changes } = await ask(ctx, asked).catch(async (error) => {
    if (isFirst && error instanceof Failure && REFUSALS.has(error.code)) {
      const { code, detail } = error
      await ctx.fenced((tx) => tx.run(refuseRefund(asked.id, { code, detail })))
    }
    throw error
  })
  const change = refundChange(answered.object, answered.at)
  if (change === null) throw fail('payment.failed', { reason: 'its answer could not be understood' })
  // With our own ids of the payment, too: the answer may name it by another one.
  const ids = [...new Set([asked.charge, asked.payment_intent, ...change.ids])].filter((id) => id !== null)
  const named = { ...change, ids, request: asked.job_id }
  await ctx.fenced((tx) => tx.run(applyChanges([...changes, named])))
  return change.id
}

// After these of a first attempt it is certain that there will be no refund. Of a later one they say nothing of what an earlier
// one may have achieved, with another key perhaps: its amount stays reserved until `payments.reconcile` has looked it up.
const REFUSALS: ReadonlySet<string> = new Set([
  'payment.not_configured',
  'payment.key',
  'payment.rejected',
  'payment.declined',
] satisfies ErrorCode[])

async function ask(
  { providers, job, signal }: TaskContext,
  { id: _, job_id, amount, reason, ...ids }: Refund,
): Promise<{ answered: Answered; changes: Resolved['changes'] }> {
  const resolved = await resolvePayment(providers.payments, ids, signal)
  if (resolved === null)
    throw fail('payment.rejected', { reason: 'The provider knows no charge of this payment to refund' })
  const request = job_id ?? job.id
  const note = reason === null || isKnownReason(reason) ? {} : { note: reason }
  const metadata = { [REQUEST_KEY]: request, ...note }
  const answered = await providers.payments.createRefund(
    { payment: resolved.payment, amount, reason, metadata },
    { key: `${request}:refund`, signal },
  )
  return { answered, changes: resolved.changes }
}
