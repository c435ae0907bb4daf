import { fail } from '../../sql/errors.ts'
import { requireQuota } from '../../sql/quotas/quotas.ts'
import { type Metadata, openDocumentCollection, type Selection } from '../../sql/rag/documents.ts'
import type { TaskContext } from '../context.ts'
import { prepareBuild } from './documents.ts'
import type { IndexResult } from './index-result.ts'
import { omitEmpty } from './metadata.ts'

interface IndexDocumentsPayload {
  readonly collection: string
  readonly documents: Selection
  readonly metadata: Metadata
}

/** Runs `rag.index_documents`. */
export async function run(
  ctx: TaskContext,
  { collection: name, documents, metadata }: IndexDocumentsPayload,
): Promise<IndexResult> {
  const { ownerId } = ctx.job
  const id = await ctx.runFenced(async (tx) => {
    const opened = await tx.one(openDocumentCollection(name, ownerId, documents, metadata))
    // Collections have a quota, because a change of a document refreshes all collections that may contain it.
    if (opened.created) await requireQuota(tx, ownerId, ['collections'], ctx.settings.quotas)
    return opened.id
  })
  if (id === null) throw fail('rag.name_taken')
  const { build, gone } = await prepareBuild(ctx, { id, name }, ownerId, { selection: documents, metadata })
  return build.finish(gone, { documents, ...omitEmpty({ metadata }) })
}
