import type { Query } from '../../sql/db.ts'
import { deleteDeadBuilds, deleteEmptyCollections, deleteHiddenFiles, VACUUMS } from '../../sql/rag.ts'
import type { TaskContext } from '../context.ts'

// Files have several chunks each: a batch is small enough that no statement holds its locks for long.
const BATCH = 200

/** The work of `rag.purge`. */
export async function run({ db, signal }: TaskContext): Promise<{ files: number }> {
  const all = async (query: () => Query<{ count: number }>): Promise<number> => {
    let total = 0
    for (let count = BATCH; count === BATCH && !signal.aborted; total += count)
      ({ count } = await db.one(query()))
    return total
  }
  const files = (await all(() => deleteHiddenFiles(BATCH))) + (await all(() => deleteDeadBuilds(BATCH)))
  await db.run(deleteEmptyCollections())
  if (files > 0) for (const vacuum of VACUUMS) await db.run(vacuum)
  return { files }
}
