import { applyTagChange, findUnappliedTag, RETAG_BATCH_SIZE } from '../../sql/blog/posts.ts'
import type { TaskContext } from '../context.ts'
import { runInBatches } from '../system/batches.ts'

/** Runs `blog.retag`. */
export async function run({ db, reportProgress, signal }: TaskContext): Promise<{ posts: number }> {
  let total = 0
  for (
    let tag = await db.maybeOne(findUnappliedTag());
    tag !== null;
    tag = await db.maybeOne(findUnappliedTag())
  ) {
    const { id, posts } = tag
    total += await runInBatches(signal, RETAG_BATCH_SIZE, (done) => {
      reportProgress(`Tag ${id}: posts`, done, posts)
      return db.one(applyTagChange(id, RETAG_BATCH_SIZE))
    })
  }
  return { posts: total }
}
