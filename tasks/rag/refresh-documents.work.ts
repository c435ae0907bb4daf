import { findDocumentCollection } from '../../sql/rag/documents.ts'
import type { TaskContext } from '../context.ts'
import { prepareBuild } from './documents.ts'
import type { IndexResult } from './index-result.ts'
import { omitEmpty } from './metadata.ts'

interface RefreshPayload {
  readonly collection_id: number
}

/** Runs `rag.refresh_documents`. */
export async function run(
  ctx: TaskContext,
  { collection_id: id }: RefreshPayload,
): Promise<IndexResult | null> {
  const collection = await ctx.db.maybeOne(findDocumentCollection(id))
  if (collection === null) return null
  const { name, owner_id, selection, document_metadata: metadata } = collection
  const { build, gone } = await prepareBuild(ctx, { id, name }, owner_id, { selection, metadata })
  // Skips a swap without changes: every process that searches the collection would load the new version.
  if (!build.hasFiles && gone.length === 0) return null
  return build.finish(gone, { documents: selection, ...omitEmpty({ metadata }) })
}
