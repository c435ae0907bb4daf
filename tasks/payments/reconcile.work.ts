import type { Queries } from '../../sql/db.ts'
import {
  applyChanges,
  deleteRefusedRefunds,
  findRefund,
  getReconciledTime,
  listUnknownEvents,
  listUnlinkedInvoices,
  listUnsettledRefunds,
  lockUnappliedEvents,
  markLookedUp,
  type Refund,
  refuseRefund,
  setReconciledTime,
} from '../../sql/payments/changes.ts'
import type { TaskContext } from '../context.ts'
import { runInBatches } from '../system/batches.ts'
import type { EnqueueOptions } from '../task.ts'
import { ingestEvent } from './event.task.ts'
import type { Change } from './facts.ts'
import { linkInvoice, resolvePayments } from './payment-id.ts'
import { JOB_METADATA_KEY } from './provider.ts'
import { findIgnoreReason, LISTED_EVENT_TYPES, parseEvent } from './provider-events.ts'
import { objectOf, type ProviderObject, textOf } from './reading.ts'
import { toRefundChange } from './refunds.ts'
import { modeOf } from './settings.ts'

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
  await linkInvoices(ctx)
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
    missed += await ctx.runFenced((tx) => ingestPage(ctx, tx, page))
    ctx.reportProgress(`Ingested ${missed} missed events`)
  }
  // Store the time only after the last page, so that an interrupted read starts over.
  await ctx.runFenced((tx) => tx.run(setReconciledTime(now)))
  return missed
}

async function ingestPage(ctx: TaskContext, tx: Queries, page: readonly ProviderObject[]): Promise<number> {
  const mode = modeOf(ctx.settings.payments.secretKey)
  const events = page
    .filter((value) => findIgnoreReason(value, mode) === null)
    .map(parseEvent)
    .filter((event) => event !== null)
  const unknown = new Set((await tx.any(listUnknownEvents(events.map(({ id }) => id)))).map(({ id }) => id))
  let fresh = 0
  for (const event of events.filter(({ id }) => unknown.has(id)))
    if ((await ingestEvent(tx, event, enqueueOptionsOf(ctx))).fresh) fresh++
  return fresh
}

/**
 * Settles refunds that are pending, and those whose request got no answer. After the grace period, a refund that the
 * provider does not have will never be created. Returns the number of settled refunds.
 */
async function settleRefunds(ctx: TaskContext): Promise<number> {
  let settled = 0
  for (const { id } of await ctx.db.any(listUnsettledRefunds(SETTLE_GRACE_SECONDS, BATCH_SIZE)))
    if (await tryLookUp(ctx, `refund ${id}`, () => settleRefund(ctx, id))) settled++
  return settled
}

/** Looks up paid invoices whose payments are unknown, because an earlier look-up failed. */
async function linkInvoices(ctx: TaskContext): Promise<void> {
  for (const { invoice } of await ctx.db.any(listUnlinkedInvoices(BATCH_SIZE)))
    await tryLookUp(ctx, `invoice ${invoice}`, async () => {
      const { change } = await linkInvoice(ctx.providers.payments, invoice, ctx.signal)
      await ctx.runFenced((tx) => tx.run(applyChanges([change])))
      return true
    })
}

/** Runs a look-up. On failure, returns false; the next run retries it. */
async function tryLookUp(ctx: TaskContext, what: string, lookUp: () => Promise<boolean>): Promise<boolean> {
  ctx.signal.throwIfAborted()
  try {
    return await lookUp()
  } catch (error) {
    ctx.log.warn({ error: String(error) }, `Payment look-up of ${what} failed`)
    return false
  }
}

/** Looks up a refund. Returns true if its state is then final. */
async function settleRefund(ctx: TaskContext, id: number): Promise<boolean> {
  const refund = await ctx.db.maybeOne(findRefund(id))
  if (refund === null) return false
  const { payments: provider } = ctx.providers
  const { payments, changes } = await resolvePayments(provider, refund, ctx.signal)
  const found: Change[] = []
  for (const { payment } of payments) {
    const { objects, at } = await provider.listRefunds(payment, ctx.signal)
    found.push(
      ...objects.filter((one) => isSameRefund(one, refund)).flatMap((one) => toRefundChange(one, at) ?? []),
    )
  }
  const refusal = { code: 'payment.failed', detail: 'The payment provider did not create the refund' }
  return ctx.runFenced(async (tx) => {
    // Changes nothing if the provider has accepted the refund.
    await tx.run(found.length === 0 ? refuseRefund(id, refusal) : applyChanges([...changes, ...found]))
    return (await tx.maybeOne(markLookedUp(id)))?.settled ?? true
  })
}

function isSameRefund(object: ProviderObject, { provider_refund_id: known, job_id }: Refund): boolean {
  if (known !== null) return object.id === known
  return job_id !== null && textOf(objectOf(object.metadata)[JOB_METADATA_KEY]) === job_id
}
