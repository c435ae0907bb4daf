import type { Queries } from '../../sql/db.ts'
import {
  applyChanges,
  deleteRefusedRefunds,
  type Refund,
  reconciledTime,
  refundById,
  refuseRefund,
  setReconciledTime,
  unappliedEvents,
  unknownEvents,
  unresolvedRefunds,
} from '../../sql/payment-changes.ts'
import { runInBatches } from '../batches.ts'
import type { TaskContext } from '../context.ts'
import type { EnqueueOptions } from '../task.ts'
import { ingestEvent } from './event.ts'
import { resolvePayment } from './payment-id.ts'
import { LISTED_TYPES, readEvent } from './provider-events.ts'
import { objectOf, type ProviderObject, textOf } from './reading.ts'
import { REQUEST_KEY, refundChange } from './transactions.ts'

// The provider keeps its events for 30 days.
const EVENT_RETENTION_SECONDS = 30 * 86_400
// Overlap of consecutive reads: events become visible slightly out of order, and clocks differ.
const OVERLAP_SECONDS = 600
// Time for which an abandoned request can still reach the provider.
const SETTLE_GRACE_SECONDS = 300
const BATCH = 500

/** Runs `payments.reconcile`. */
export async function run(ctx: TaskContext): Promise<{ missed: number; left: number; settled: number }> {
  const left = await ingestUnapplied(ctx)
  await runInBatches(ctx.signal, BATCH, () => ctx.db.one(deleteRefusedRefunds(BATCH)))
  if (ctx.settings.payments.secretKey === undefined) return { missed: 0, left, settled: 0 }
  const missed = await ingestMissedEvents(ctx)
  return { missed, left, settled: await settleRefunds(ctx) }
}

const optionsOf = ({ settings, job }: TaskContext): EnqueueOptions => ({
  ownerId: null,
  requestId: job.requestId,
  settings,
})

/** Enqueues new jobs for stored events that are unapplied and have no live job; returns their number. */
async function ingestUnapplied(ctx: TaskContext): Promise<number> {
  return ctx.fenced(async (tx) => {
    const rows = await tx.any(unappliedEvents(BATCH))
    for (const row of rows) await ingestEvent(tx, row, optionsOf(ctx))
    return rows.length
  })
}

/** Ingests missed events from the provider's list, from where the last complete read ended; returns their number. */
async function ingestMissedEvents(ctx: TaskContext): Promise<number> {
  const { now, at } = await ctx.db.one(reconciledTime())
  const since = Math.floor(Math.max(at ?? 0, now - EVENT_RETENTION_SECONDS)) - OVERLAP_SECONDS
  let missed = 0
  for await (const page of ctx.providers.payments.listEvents(since, LISTED_TYPES, ctx.signal)) {
    missed += await ctx.fenced((tx) => ingestPage(tx, page, optionsOf(ctx)))
    ctx.progress(`Ingested ${missed} missed events`)
  }
  // Stores the time only after the last page, so that an interrupted read starts over.
  await ctx.fenced((tx) => tx.run(setReconciledTime(now)))
  return missed
}

async function ingestPage(
  tx: Queries,
  page: readonly ProviderObject[],
  options: EnqueueOptions,
): Promise<number> {
  const events = page.map(readEvent).filter((event) => event !== null)
  const unknown = new Set((await tx.any(unknownEvents(events.map(({ id }) => id)))).map(({ id }) => id))
  let fresh = 0
  for (const event of events.filter(({ id }) => unknown.has(id)))
    if ((await ingestEvent(tx, event, options)).fresh) fresh++
  return fresh
}

/**
 * Settles refunds whose request got no answer: after the grace period the provider either has them or never will.
 * Returns their number.
 */
async function settleRefunds(ctx: TaskContext): Promise<number> {
  let settled = 0
  for (const { id } of await ctx.db.any(unresolvedRefunds(SETTLE_GRACE_SECONDS, BATCH))) {
    ctx.signal.throwIfAborted()
    const refund = await ctx.db.maybeOne(refundById(id))
    if (refund !== null && (await trySettle(ctx, refund))) settled++
  }
  return settled
}

/** Settles a refund; true on success. After a failure, the next run retries it. */
async function trySettle(ctx: TaskContext, refund: Refund): Promise<boolean> {
  try {
    await settle(ctx, refund)
    return true
  } catch (error) {
    ctx.log.warn({ refundId: refund.id, error: String(error) }, 'Refund look-up failed')
    return false
  }
}

async function settle(ctx: TaskContext, refund: Refund): Promise<void> {
  const { payments } = ctx.providers
  const resolved = await resolvePayment(payments, refund, ctx.signal)
  const { objects, at } =
    resolved === null ? { objects: [], at: 0 } : await payments.listRefunds(resolved.payment, ctx.signal)
  const found = objects.find(({ metadata }) => textOf(objectOf(metadata)[REQUEST_KEY]) === refund.job_id)
  const change = found === undefined ? null : refundChange(found, at)
  const refusal = { code: 'payment.failed', detail: 'The payment provider did not create the refund' }
  await ctx.fenced((tx) =>
    tx.run(
      change === null
        ? refuseRefund(refund.id, refusal)
        : applyChanges([...(resolved?.changes ?? []), change]),
    ),
  )
}
