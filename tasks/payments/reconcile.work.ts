import type { Queries } from '../../sql/db.ts'
import {
  applyChanges,
  deleteRefusedRefunds,
  findRefund,
  getReconciledTime,
  listUnknownEvents,
  listUnresolvedRefunds,
  lockUnappliedEvents,
  type Refund,
  refuseRefund,
  setReconciledTime,
} from '../../sql/payments/changes.ts'
import type { TaskContext } from '../context.ts'
import { runInBatches } from '../system/batches.ts'
import type { EnqueueOptions } from '../task.ts'
import { ingestEvent } from './event.task.ts'
import { resolvePayment } from './payment-id.ts'
import { LISTED_EVENT_TYPES, parseEvent } from './provider-events.ts'
import { objectOf, type ProviderObject, textOf } from './reading.ts'
import { JOB_METADATA_KEY, toRefundChange } from './transactions.ts'

// The provider keeps its events for 30 days.
const EVENT_RETENTION_SECONDS = 30 * 86_400
// Overlap of consecutive reads, because events become visible slightly out of order and clocks differ.
const READ_OVERLAP_SECONDS = 600
// Maximum time after which a request of a dead attempt can still reach the provider.
const SETTLE_GRACE_SECONDS = 300
const BATCH_SIZE = 500

/** Runs `payments.reconcile`. */
export async function run(ctx: TaskContext): Promise<{ missed: number; left: number; settled: number }> {
  const left = await ingestUnappliedEvents(ctx)
  await runInBatches(ctx.signal, BATCH_SIZE, () => ctx.db.one(deleteRefusedRefunds(BATCH_SIZE)))
  if (ctx.settings.payments.secretKey === undefined) return { missed: 0, left, settled: 0 }
  const missed = await ingestMissedEvents(ctx)
  return { missed, left, settled: await settleRefunds(ctx) }
}

const enqueueOptionsOf = ({ settings, job }: TaskContext): EnqueueOptions => ({
  ownerId: null,
  requestId: job.requestId,
  settings,
})

/** Enqueues new jobs for stored events that have neither been applied nor have a live job. Returns their number. */
async function ingestUnappliedEvents(ctx: TaskContext): Promise<number> {
  return ctx.runFenced(async (tx) => {
    const rows = await tx.any(lockUnappliedEvents(BATCH_SIZE))
    for (const row of rows) await ingestEvent(tx, row, enqueueOptionsOf(ctx))
    return rows.length
  })
}

/** Ingests events that the provider lists but never delivered, since the last complete read. Returns their number. */
async function ingestMissedEvents(ctx: TaskContext): Promise<number> {
  const { now, at } = await ctx.db.one(getReconciledTime())
  const since = Math.floor(Math.max(at ?? 0, now - EVENT_RETENTION_SECONDS)) - READ_OVERLAP_SECONDS
  let missed = 0
  for await (const page of ctx.providers.payments.listEvents(since, LISTED_EVENT_TYPES, ctx.signal)) {
    missed += await ctx.runFenced((tx) => ingestPage(tx, page, enqueueOptionsOf(ctx)))
    ctx.reportProgress(`Ingested ${missed} missed events`)
  }
  // Store the time only after the last page, so that an interrupted read starts over.
  await ctx.runFenced((tx) => tx.run(setReconciledTime(now)))
  return missed
}

async function ingestPage(
  tx: Queries,
  page: readonly ProviderObject[],
  options: EnqueueOptions,
): Promise<number> {
  const events = page.map(parseEvent).filter((event) => event !== null)
  const unknown = new Set((await tx.any(listUnknownEvents(events.map(({ id }) => id)))).map(({ id }) => id))
  let fresh = 0
  for (const event of events.filter(({ id }) => unknown.has(id)))
    if ((await ingestEvent(tx, event, options)).fresh) fresh++
  return fresh
}

/**
 * Settles refunds whose request got no answer. After the grace period, a refund that the provider does not have will
 * never be created. Returns the number of settled refunds.
 */
async function settleRefunds(ctx: TaskContext): Promise<number> {
  let settled = 0
  for (const { id } of await ctx.db.any(listUnresolvedRefunds(SETTLE_GRACE_SECONDS, BATCH_SIZE))) {
    ctx.signal.throwIfAborted()
    const refund = await ctx.db.maybeOne(findRefund(id))
    if (refund !== null && (await trySettleRefund(ctx, refund))) settled++
  }
  return settled
}

/** Settles a refund and returns true. On failure, returns false; the next run retries it. */
async function trySettleRefund(ctx: TaskContext, refund: Refund): Promise<boolean> {
  try {
    await settleRefund(ctx, refund)
    return true
  } catch (error) {
    ctx.log.warn({ refundId: refund.id, error: String(error) }, 'Refund look-up failed')
    return false
  }
}

async function settleRefund(ctx: TaskContext, refund: Refund): Promise<void> {
  const { payments } = ctx.providers
  const resolved = await resolvePayment(payments, refund, ctx.signal)
  const { objects, at } =
    resolved === null ? { objects: [], at: 0 } : await payments.listRefunds(resolved.payment, ctx.signal)
  const found = objects.find(({ metadata }) => textOf(objectOf(metadata)[JOB_METADATA_KEY]) === refund.job_id)
  const change = found === undefined ? null : toRefundChange(found, at)
  const refusal = { code: 'payment.failed', detail: 'The payment provider did not create the refund' }
  await ctx.runFenced((tx) =>
    tx.run(
      change === null
        ? refuseRefund(refund.id, refusal)
        : applyChanges([...(resolved?.changes ?? []), change]),
    ),
  )
}
