import { announceDuePosts } from '../../sql/blog/publishing.ts'
import type { TaskContext } from '../context.ts'
import { enqueueAnnouncement } from './announcement.ts'

// Each announcement writes a delivery for each endpoint.
const BATCH_SIZE = 100

/** Runs `blog.announce`. */
export async function run(ctx: TaskContext): Promise<{ posts: number }> {
  let posts = 0
  for (let count = 1; count > 0; posts += count) {
    ctx.signal.throwIfAborted()
    count = await ctx.runFenced(async (tx) => (await tx.one(announceDuePosts(BATCH_SIZE))).count)
  }
  await ctx.runFenced((tx) => enqueueAnnouncement(tx, ctx.settings, ctx.job.requestId))
  return { posts }
}
