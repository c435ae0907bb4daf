import type { Queries } from '../../sql/db.ts'
import {
  applyChanges,
  deleteRefusedRefunds,
  type Refund,
  readUntil,
  refundById,
  refuseRefund,
  setReadUntil,
  unappliedEvents,
  unknownEvents,
  unsettledRefunds,
} from '../../sql/payment-changes.ts'
import { inBatches } from '../batches.ts'
import type { TaskContext } from '../context.ts'
import type { EnqueueOptions } from '../task.ts'
import { ingestEvent } from './event.ts'
import { resolvePayment } from './payment-id.ts'
import { LISTED_TYPES, readEvent } from './provider-events.ts'
import { objectOf, type ProviderObject, textOf } from './reading.ts'
import { REQUEST_KEY, refundChange } from './transactions.ts'

// How long the provider keeps its events.
const REMEMBERED_SECONDS = 30 * 86_400
// Events become visible a little out of order, and clocks differ.
const OVERLAP_SECONDS = 600
// A request to the provider that nobody waits for any more can still be under way for this long.
const SETTLE_SECONDS = 300
const BATCH = 500

/** The work of `payments.reconcile`. */
export async function run(ctx: TaskContext): Promise<{ missed: number; left: number; settled: number }> {
  const left = await ingestUnapplied(ctx)
  await inBatches(ctx.signal, BATCH, () => ctx.db.one(deleteRefusedRefunds(BATCH)))
  if (ctx.settings.payments.secretKey === undefined) return { missed: 0, left, settled: 0 }
  const missed = await ingestMissedEvents(ctx)
  return { missed, left, settled: await settleRefunds(ctx) }
}

const optionsOf = ({ settings, job }: TaskContext): EnqueueOptions => ({
  ownerId: null,
  requestId: job.requestId,
  settings,
})

/** Ingests again stored events whose job is gone or has failed. */
async function ingestUnapplied(ctx: TaskContext): Promise<number> {
  return ctx.fenced(async (tx) => {
    const rows = await tx.any(unappliedEvents(BATCH))
    for (const row of rows) await ingestEvent(tx, row, optionsOf(ctx))
    return rows.length
  })
}

/** Ingests missed events from the provider's list since it was last read to its end. */
async function ingestMissedEvents(ctx: TaskContext): Promise<number> {
  const { now, at } = await ctx.db.one(readUntil())
  const since = Math.floor(Math.max(at ?? 0, now - REMEMBERED_SECONDS)) - OVERLAP_SECONDS
  let missed = 0
  for await (const page of ctx.providers.payments.eventsSince(since, LISTED_TYPES, ctx.signal)) {
    missed += await ctx.fenced((tx) => ingestPage(tx, page, optionsOf(ctx)))
    ctx.progress(`${missed} events were missed`)
  }
  // Only now, so that a list that was cut short is read again from where it began.
  await ctx.fenced((tx) => tx.run(setReadUntil(now)))
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

/** Settles refunds that were requested and never answered: either the provider has them by now, or it never will. */
async function settleRefunds(ctx: TaskContext): Promise<number> {
  let settled = 0
  for (const { id } of await ctx.db.any(unsettledRefunds(SETTLE_SECONDS, BATCH))) {
    ctx.signal.throwIfAborted()
    const asked = await ctx.db.maybeOne(refundById(id))
    if (asked !== null && (await settleOnce(ctx, asked))) settled++
  }
  return settled
}

/** Whether a refund could be looked up, and so is settled. What failed is repeated by the next run. */
async function settleOnce(ctx: TaskContext, asked: Refund): Promise<boolean> {
  try {
    await settle(ctx, asked)
    return true
  } catch (error) {
    ctx.log.warn({ refundId: asked.id, error: String(error) }, 'The refund could not be looked up')
    return false
  }
}

async function settle(ctx: TaskContext, asked: Refund): Promise<void> {
  const { payments } = ctx.providers
  const resolved = await resolvePayment(payments, asked, ctx.signal)
  const { objects, at } =
    resolved === null ? { objects: [], at: 0 } : await payments.refundsOf(resolved.payment, ctx.signal)
  const taken = objects.find(({ metadata }) => textOf(objectOf(metadata)[REQUEST_KEY]) === asked.job_id)
  const change = taken === undefined ? null : refundChange(taken, at)
  const refusal = { code: 'payment.failed', detail: 'The provider has no such refund' }
  await ctx.fenced((tx) =>
    tx.run(
      change === null
        ? refuseRefund(asked.id, refusal)
        : applyChanges([...(resolved?.changes ?? []), change]),
    ),
  )
}
