import {
  deleteDeadBuilds,
  deleteEmptyCollections,
  listDeletedCollections,
  VACUUM_STATEMENTS,
} from '../../sql/rag/collections.ts'
import { COLLECTION_DEPENDENTS } from '../../sql/retention/purge.ts'
import type { TaskContext } from '../context.ts'
import { runInBatches } from '../system/batches.ts'
import { purgeBelongings } from '../system/purge.ts'

// Number of files per batch. Small, because each file has several chunks and a statement holds its locks until all are
// deleted.
const BATCH_SIZE = 200

/** Runs `rag.purge`. */
export async function run(ctx: TaskContext): Promise<{ rows: number }> {
  const { db, signal } = ctx
  let rows = await runInBatches(signal, BATCH_SIZE, () => db.one(deleteDeadBuilds(BATCH_SIZE)))
  // Labels contain ids instead of names, because admins who see the job may not be allowed to see the names.
  for (const { id } of await db.any(listDeletedCollections()))
    rows += await purgeBelongings(ctx, `Collection ${id}`, id, COLLECTION_DEPENDENTS)
  await db.run(deleteEmptyCollections())
  if (rows > 0) for (const vacuum of VACUUM_STATEMENTS) await db.run(vacuum)
  return { rows }
}
