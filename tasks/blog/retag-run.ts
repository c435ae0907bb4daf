import { applyTag, RETAG_BATCH, unappliedTag } from '../../sql/blog.ts'
import type { TaskContext } from '../context.ts'

/** The work of `blog.retag`. */
export async function run({ db, progress, signal }: TaskContext): Promise<{ posts: number }> {
  let total = 0
  for (let tag = await db.maybeOne(unappliedTag()); tag !== null; tag = await db.maybeOne(unappliedTag())) {
    let done = 0
    for (let count = RETAG_BATCH; count === RETAG_BATCH; done += count) {
      signal.throwIfAborted()
      progress(`Tag ${tag.id}: posts`, done, tag.posts)
      count = (await db.one(applyTag(tag.id, RETAG_BATCH))).count
    }
    total += done
  }
  return { posts: total }
}
