import { applyTag, RETAG_BATCH, unappliedTag } from '../../sql/blog.ts'
import { runInBatches } from '../batches.ts'
import type { TaskContext } from '../context.ts'

/** Runs `blog.retag`. */
export async function run({ db, progress, signal }: TaskContext): Promise<{ posts: number }> {
  let total = 0
  for (let tag = await db.maybeOne(unappliedTag()); tag !== null; tag = await db.maybeOne(unappliedTag())) {
    const { id, posts } = tag
    total += await runInBatches(signal, RETAG_BATCH, (done) => {
      progress(`Tag ${id}: posts`, done, posts)
      return db.one(applyTag(id, RETAG_BATCH))
    })
  }
  return { posts: total }
}
