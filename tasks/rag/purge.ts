import { z } from 'zod'
import type { Query } from '../../sql/db.ts'
import { deleteDeadBuilds, deleteEmptyCollections, deleteHiddenFiles, VACUUMS } from '../../sql/rag.ts'
import { defineTask } from '../task.ts'

// Files have some chunks each: few enough that no statement holds its locks for long.
const BATCH = 200

/** Removes the rows of deleted collections and of runs that were killed, and gives their room back. */
export const purge = defineTask({
  name: 'rag.purge',
  queue: 'system',
  pool: 'io',
  actor: () => 'rag.purge',
  payload: z.strictObject({}),
  result: z.strictObject({ files: z.int() }),
  run: async ({ db, signal }) => {
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
  },
})
