import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { announcePosts } from '../../sql/blog/publishing.ts'
import { announceScheduled } from '../../tasks/blog/announce.task.ts'
import type { TaskContext } from '../../tasks/context.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { pruneExpired } from '../../tasks/system/prune.task.ts'
import { createTestDatabase, waitForLock } from '../database.ts'

/** Every scheduled post is announced, whatever happens to the jobs that do it. */

const { db, query } = await createTestDatabase()
const settings = parseSettings({})

/** Adds published posts and returns their ids. */
async function addPosts(count: number, publishedAt: string): Promise<number[]> {
  const rows = await query(
    `insert into blog_post (title, slug, status, published_at)
     select 'Post', 'post-' || gen_random_uuid(), 'published', $2::timestamptz from generate_series(1, $1) returning id::int`,
    [count, publishedAt],
  )
  return rows.map(({ id }) => id as number)
}
const countUnannounced = async (): Promise<unknown> =>
  (await query('select count(*)::int as n from blog_post where announced_at is null'))[0]!.n
const readJobs = () =>
  query(
    `select payload ->> 'at' as at, run_at <= now() as due from job where name = 'blog.announce' and finished_at is null`,
  )

/** Runs the task. `afterWrites` follows each of its transactions. */
const announce = (afterWrites: () => Promise<unknown> = () => Promise.resolve()) =>
  announceScheduled.run(
    {
      settings,
      job: { id: '', attempt: 1, ownerId: null, requestId: null },
      signal: new AbortController().signal,
      runFenced: async (work) => {
        const result = await db.transaction(work)
        await afterWrites()
        return result
      },
    } as TaskContext,
    { at: '2026-01-01T00:00:00.000Z' },
  )

describe('the announcement of posts', { concurrency: false }, () => {
  beforeEach(() => query('truncate blog_post, job cascade'))

  test('adds an immediate job for a post that falls due after the last batch', async () => {
    let added = false
    const at = '2026-01-01T00:00:00.000Z'
    await announce(async () => {
      if (!added) await addPosts(1, at)
      added = true
    })
    assert.deepEqual([await countUnannounced(), await readJobs()], [1, [{ at, due: true }]])
    assert.deepEqual(await announce(), { posts: 1 })
  })

  test('continues after a batch of which others have announced some', async () => {
    const ids = await addPosts(150, '2026-01-01T00:00:00Z')
    const running = await db.transaction(async (tx) => {
      await tx.one(announcePosts(ids.slice(0, 50)))
      const run = announce()
      await waitForLock(query)
      return { run }
    })
    assert.deepEqual(await running.run, { posts: 100 })
    assert.equal(await countUnannounced(), 0)
  })

  test('continues after its job was lost', async () => {
    const at = '2100-01-01T00:00:00.000Z'
    await addPosts(1, at)
    const prune = () =>
      pruneExpired.run({ db, settings, signal: new AbortController().signal } as TaskContext, {})
    await prune()
    await prune()
    assert.deepEqual(await readJobs(), [{ at, due: false }])
    await query(`update job set status = 'cancelled', finished_at = now() where name = 'blog.announce'`)
    await prune()
    assert.deepEqual(await readJobs(), [{ at, due: false }])
  })
})
