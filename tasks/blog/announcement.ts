import { z } from 'zod'
import { readNextPublication } from '../../sql/blog/publishing.ts'
import type { Queries } from '../../sql/db.ts'
import { enqueue, type JobSettings, type TaskDeclaration } from '../task.ts'

/** `blog.announce` as the code declares it that adds its jobs; `announce.task.ts` adds how it runs. */
export const ANNOUNCEMENT_TASK: TaskDeclaration<{ at: string }, { posts: number }> = {
  name: 'blog.announce',
  queue: 'system',
  pool: 'io',
  actor: () => 'blog.announce',
  whenBusy: 'join_waiting',
  joinCriteria: ({ at }) => ({ at }),
  payload: z.strictObject({ at: z.iso.datetime() }),
  result: z.strictObject({ posts: z.int() }),
}

/**
 * Adds the job that announces the next posts, unless one waits for their time already. A post that fell due meanwhile
 * is the next. Call it last in the
 * transaction that schedules posts, because the job's mailbox stays locked until the commit.
 */
export async function enqueueAnnouncement(
  tx: Queries,
  settings: JobSettings,
  requestId: string | null,
): Promise<void> {
  const next = await tx.maybeOne(readNextPublication())
  if (next === null) return
  // No account owns the job, because the schedule outlives the account that made it.
  const options = { ownerId: null, requestId, delayMs: Math.ceil(next.ms), settings }
  await enqueue(tx, ANNOUNCEMENT_TASK, { at: next.at }, options)
}
