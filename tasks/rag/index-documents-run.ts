import { fail } from '../../sql/errors.ts'
import { openDocuments } from '../../sql/rag/documents.ts'
import type { TaskContext } from '../context.ts'
import { compareSelection } from './documents.ts'
import type { IndexDocumentsPayload } from './index-documents.ts'
import type { IndexResult } from './index-result.ts'

// Each change of a document has all collections follow that it may be in.
const MAX_COLLECTIONS = 1000

/** The work of `rag.index_documents`. */
export async function run(
  ctx: TaskContext,
  { collection: name, documents }: IndexDocumentsPayload,
): Promise<IndexResult> {
  const { ownerId } = ctx.job
  const { id } = await ctx.fenced((tx) => tx.one(openDocuments(name, ownerId, documents, MAX_COLLECTIONS)))
  if (id === null) throw fail('rag.name_taken')
  if (id === 0) throw fail('rag.too_many_collections', { max: MAX_COLLECTIONS })
  const { build, gone } = await compareSelection(ctx, { id, name }, ownerId, documents)
  return build.finish(gone, { documents })
}
