import { notifyJobChanges } from '../../sql/connections/notify.ts'
import { addTag, deleteDocuments, findDeletedDocuments, removeTag } from '../../sql/documents/documents.ts'
import { cancelExtractions, listOwnedDocuments } from '../../sql/documents/pages.ts'
import { type ErrorCode, fail } from '../../sql/errors.ts'
import type { TaskContext } from '../context.ts'
import { refreshCollections } from '../rag/refresh-documents.task.ts'
import { type EnqueueOptions, enqueueMany } from '../task.ts'
import { EXTRACTION_TASK } from './extraction.ts'

type BulkAction =
  | { readonly action: 'tag' | 'untag'; readonly ids: readonly number[]; readonly label: string }
  | { readonly action: 'delete'; readonly ids: readonly number[]; readonly permanent: boolean }
  | { readonly action: 'extract'; readonly ids: readonly number[] }

interface BulkResult {
  done: number
  readonly refused: { id: number; code: string; detail: string }[]
}

// Documents per transaction and per progress report. Small, so that a transaction holds few locks.
const BATCH_SIZE = 100

const PROGRESS_LABELS = {
  tag: 'Tagging documents',
  untag: 'Removing the tag',
  delete: 'Deleting documents',
  extract: 'Starting extractions',
}

/** The outcomes of a batch by document id: `done` or an error code. Documents without an entry are missing. */
type Outcomes = ReadonlyMap<number, ErrorCode | 'done'>

/** Runs `documents.bulk`. */
export async function run(ctx: TaskContext, action: BulkAction): Promise<BulkResult> {
  const ids = [...new Set(action.ids)].sort((a, b) => a - b)
  const result: BulkResult = { done: 0, refused: [] }
  for (let start = 0; start < ids.length; start += BATCH_SIZE) {
    ctx.signal.throwIfAborted()
    ctx.reportProgress(PROGRESS_LABELS[action.action], start, ids.length)
    const batch = ids.slice(start, start + BATCH_SIZE)
    const outcomes = await ACTIONS[action.action](ctx, batch, action as never)
    // Refresh after the change, so that a retry repeats both. Extractions refresh collections themselves.
    if (action.action !== 'extract')
      await ctx.db.transaction((tx) => refreshCollections(tx, batch, enqueueOptionsOf(ctx)))
    for (const id of batch) {
      const outcome = outcomes.get(id) ?? 'document.missing'
      if (outcome === 'done') result.done++
      else result.refused.push({ id, code: outcome, detail: fail(outcome).detail })
    }
  }
  return result
}

const enqueueOptionsOf = ({ job: { ownerId, requestId }, settings }: TaskContext): EnqueueOptions => ({
  ownerId,
  requestId,
  settings,
})

type RunAction<A> = (
  ctx: TaskContext,
  ids: readonly number[],
  action: Extract<BulkAction, { action: A }>,
) => Promise<Outcomes>

const ACTIONS: { readonly [A in BulkAction['action']]: RunAction<A> } = {
  async tag(ctx, ids, { label }) {
    const rows = await ctx.runFenced((tx) => tx.any(addTag(ids, ctx.job.ownerId, label)))
    return new Map(rows.map(({ id, had, full }) => [id, full && !had ? 'document.tags_full' : 'done']))
  },

  async untag(ctx, ids, { label }) {
    const rows = await ctx.runFenced((tx) => tx.any(removeTag(ids, ctx.job.ownerId, label)))
    return new Map(rows.map(({ id }) => [id, 'done']))
  },

  async delete(ctx, ids, { permanent }) {
    const { ownerId } = ctx.job
    // Not fenced: a fence locks the job's row, but mailboxes must be locked first, and cancelling locks them.
    const cancelled = await ctx.db.any(cancelExtractions(ids, ownerId))
    if (cancelled.length > 0) await ctx.db.run(notifyJobChanges(cancelled.map(({ id }) => id)))
    const trashDays = permanent ? null : ctx.settings.trashDays
    const { deleted, before } = await ctx.runFenced(async (tx) => ({
      deleted: await tx.any(deleteDocuments(ids, ownerId, trashDays)),
      before: await tx.any(findDeletedDocuments(ids, ownerId)),
    }))
    return new Map([
      // Documents that an earlier attempt or another request has deleted.
      ...before.map(({ id }) => [id, 'done'] as const),
      ...deleted.map((row) => [row.id, row.protected ? 'document.protected' : 'done'] as const),
    ])
  },

  async extract(ctx, ids) {
    // Not fenced: a fence locks the job's row, but mailboxes must be locked first. The next attempt joins the jobs that
    // a superseded attempt added.
    return ctx.db.transaction(async (tx) => {
      const found = await tx.any(listOwnedDocuments(ids, ctx.job.ownerId))
      const payloads = found.flatMap(({ id, stored }) => (stored ? [{ documentId: id, force: false }] : []))
      if (payloads.length > 0) await enqueueMany(tx, EXTRACTION_TASK, payloads, enqueueOptionsOf(ctx))
      return new Map(found.map(({ id, stored }) => [id, stored ? 'done' : 'document.bytes_missing']))
    })
  },
}
