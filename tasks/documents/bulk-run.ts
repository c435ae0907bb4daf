import { addTag, deleteDocuments, deletedBefore, removeTag } from '../../sql/documents.ts'
import { type ErrorCode, fail } from '../../sql/errors.ts'
import { jobsChanged } from '../../sql/notify.ts'
import { cancelExtractions, withBytes } from '../../sql/pages.ts'
import type { TaskContext } from '../context.ts'
import { refreshCollections } from '../rag/refresh-documents.ts'
import { type EnqueueOptions, enqueueMany } from '../task.ts'
import type { BulkAction, BulkResult } from './bulk.ts'
import { EXTRACTION } from './extraction.ts'

// What one transaction holds locks on, and how far a progress bar jumps.
const BATCH = 100

const LABELS = {
  tag: 'Tagging documents',
  untag: 'Removing the tag',
  delete: 'Deleting documents',
  extract: 'Starting extractions',
}

/** What became of a batch: why documents were refused, by id; those without an entry are missing. */
type Outcomes = ReadonlyMap<number, ErrorCode | 'done'>

/** The work of `documents.bulk`. */
export async function run(ctx: TaskContext, action: BulkAction): Promise<BulkResult> {
  const ids = [...new Set(action.ids)].sort((a, b) => a - b)
  const result: BulkResult = { done: 0, refused: [] }
  for (let start = 0; start < ids.length; start += BATCH) {
    ctx.signal.throwIfAborted()
    ctx.progress(LABELS[action.action], start, ids.length)
    const batch = ids.slice(start, start + BATCH)
    const outcomes = await STEPS[action.action](ctx, batch, action as never)
    // After their change, and again by the next attempt if this one ends here. Extractions do it themselves.
    if (action.action !== 'extract')
      await ctx.db.transaction((tx) => refreshCollections(tx, batch, optionsOf(ctx)))
    for (const id of batch) {
      const outcome = outcomes.get(id) ?? 'document.missing'
      if (outcome === 'done') result.done++
      else result.refused.push({ id, code: outcome, detail: fail(outcome).detail })
    }
  }
  return result
}

const optionsOf = ({ job: { ownerId, requestId }, settings }: TaskContext): EnqueueOptions => ({
  ownerId,
  requestId,
  settings,
})

type Step<A> = (
  ctx: TaskContext,
  ids: readonly number[],
  action: Extract<BulkAction, { action: A }>,
) => Promise<Outcomes>

const STEPS: { readonly [A in BulkAction['action']]: Step<A> } = {
  async tag(ctx, ids, { label }) {
    const rows = await ctx.fenced((tx) => tx.any(addTag(ids, ctx.job.ownerId, label)))
    return new Map(rows.map(({ id, had, full }) => [id, full && !had ? 'document.tags_full' : 'done']))
  },

  async untag(ctx, ids, { label }) {
    const rows = await ctx.fenced((tx) => tx.any(removeTag(ids, ctx.job.ownerId, label)))
    return new Map(rows.map(({ id }) => [id, 'done']))
  },

  async delete(ctx, ids, { permanent }) {
    const { ownerId } = ctx.job
    // Not fenced: a fence locks a row, and cancelling locks mailboxes, which come before rows.
    const cancelled = await ctx.db.any(cancelExtractions(ids, ownerId))
    if (cancelled.length > 0) await ctx.db.run(jobsChanged(cancelled.map(({ id }) => id)))
    const trashDays = permanent ? null : ctx.settings.trashDays
    const { deleted, before } = await ctx.fenced(async (tx) => ({
      deleted: await tx.any(deleteDocuments(ids, ownerId, trashDays)),
      before: await tx.any(deletedBefore(ids, ownerId)),
    }))
    return new Map([
      // By an earlier attempt, or somebody else.
      ...before.map(({ id }) => [id, 'done'] as const),
      ...deleted.map((row) => [row.id, row.protected ? 'document.protected' : 'done'] as const),
    ])
  },

  async extract(ctx, ids) {
    // Not fenced, as above: what a superseded attempt adds is joined by what its successor adds.
    return ctx.db.transaction(async (tx) => {
      const found = await tx.any(withBytes(ids, ctx.job.ownerId))
      const payloads = found.flatMap(({ id, stored }) => (stored ? [{ documentId: id, force: false }] : []))
      if (payloads.length > 0) await enqueueMany(tx, EXTRACTION, payloads, optionsOf(ctx))
      return new Map(found.map(({ id, stored }) => [id, stored ? 'done' : 'document.bytes_missing']))
    })
  },
}
