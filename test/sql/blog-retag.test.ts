import assert from 'node:assert/strict'
import { after, beforeEach, describe, test } from 'node:test'
import { applyTagChange, findUnappliedTag, hideTag, updateTag } from '../../sql/blog/posts.ts'
import { connect } from '../../sql/connections/driver.ts'
import { retagPosts } from '../../tasks/blog/retag.task.ts'
import type { TaskContext } from '../../tasks/context.ts'
import { createTestDatabase } from '../database.ts'

/** Renamed and deleted tags are applied to posts in batches. */

// Batch size of the task.
const BATCH_SIZE = 500
// More posts than a batch, even without the first `FEW_POSTS`.
const POST_COUNT = BATCH_SIZE + 30
const FEW_POSTS = 10

const { url, db, query } = await createTestDatabase()
const other = await connect({ url, applicationName: 'other' })
after(() => other.end())

const countUnlocked = async (table: string): Promise<number> =>
  (
    await other.query<{ n: number }>(
      `with free as (select from ${table} for update skip locked) select count(*)::int as n from free`,
    )
  ).rows[0]!.n
/** Counts the posts whose `tags` column matches their rows in `blog_post_tag`. */
const countConsistentPosts = async (): Promise<unknown> =>
  (
    await query(`
      select count(*)::int as n from blog_post p where tags::jsonb = coalesce((
        select jsonb_agg(jsonb_build_object('id', t.id, 'name', t.name, 'slug', t.slug, 'created_at', iso(t.created_at))
          order by lower(t.name), t.name)
        from blog_post_tag pt join blog_tag t on t.id = pt.tag_id where pt.post_id = p.id), '[]')`)
  )[0]!.n
const progressEvents: [string, number | undefined, number | undefined][] = []
const runTask = (signal = new AbortController().signal) =>
  retagPosts.run(
    {
      db,
      signal,
      reportProgress: (label: string, current?: number, total?: number) =>
        progressEvents.push([label, current, total]),
    } as unknown as TaskContext,
    {},
  )

describe('a tag with many posts', () => {
  let big = 0

  beforeEach(async () => {
    progressEvents.length = 0
    await query('truncate blog_post, blog_tag cascade')
    const tags = await query(
      `insert into blog_tag (name, slug) values ('Big', 'big'), ('Small', 'small') returning id::int`,
    )
    big = tags[0]!.id as number
    await query(
      `insert into blog_post (title, slug, content) select 'Post ' || n, 'post-' || n, 'Text' from generate_series(1, $1) n`,
      [POST_COUNT],
    )
    await query(
      `insert into blog_post_tag (post_id, tag_id) select p.id, t.id from blog_post p, blog_tag t
       where t.slug = 'big' or p.id % 10 = 0`,
    )
    assert.equal(await countConsistentPosts(), POST_COUNT)
  })

  for (const [what, change] of [
    ['renamed', () => updateTag(big, 'A', null)],
    ['deleted', () => hideTag(big)],
  ] as const) {
    test(`${what}, locks only the posts of one batch`, async () => {
      await db.run(change())
      await db.transaction(async (tx) => {
        assert.equal((await tx.one(applyTagChange(big, BATCH_SIZE))).count, BATCH_SIZE)
        assert.equal(await countUnlocked('blog_post'), POST_COUNT - BATCH_SIZE)
        await other.query(`set lock_timeout = '1s'`)
        await other.query(`update blog_post set title = 'Edited' where slug = 'post-${POST_COUNT}'`)
      })
    })

    test(`${what}, resumes where it was interrupted`, async () => {
      await db.run(change())
      await db.one(applyTagChange(big, FEW_POSTS))
      await assert.rejects(
        db.transaction(async (tx) => {
          await tx.one(applyTagChange(big, FEW_POSTS))
          throw new Error('killed')
        }),
      )
      assert.deepEqual(await db.maybeOne(findUnappliedTag()), { id: big, posts: POST_COUNT - FEW_POSTS })
      assert.deepEqual(await runTask(), { posts: POST_COUNT - FEW_POSTS })
      assert.deepEqual(progressEvents, [
        [`Tag ${big}: posts`, 0, POST_COUNT - FEW_POSTS],
        [`Tag ${big}: posts`, 500, POST_COUNT - FEW_POSTS],
      ])
      assert.equal(await countConsistentPosts(), POST_COUNT)
      assert.equal(await db.maybeOne(findUnappliedTag()), null)
      const left = await query('select name from blog_tag order by id')
      assert.deepEqual(left, what === 'deleted' ? [{ name: 'Small' }] : [{ name: 'A' }, { name: 'Small' }])
      assert.deepEqual(await runTask(), { posts: 0 })
    })
  }

  test('leaves the rest to the next run when it is aborted', async () => {
    await db.run(updateTag(big, 'A', null))
    const stop = new AbortController()
    stop.abort()
    await assert.rejects(runTask(stop.signal))
    assert.deepEqual(await db.maybeOne(findUnappliedTag()), { id: big, posts: POST_COUNT })
    assert.deepEqual(await runTask(), { posts: POST_COUNT })
    assert.equal(await countConsistentPosts(), POST_COUNT)
  })

  test('renamed again during the run, has its last name everywhere', async () => {
    await db.run(updateTag(big, 'A', null))
    await db.one(applyTagChange(big, BATCH_SIZE))
    await db.run(updateTag(big, 'B', null))
    await runTask()
    assert.equal(await countConsistentPosts(), POST_COUNT)
    assert.equal((await query(`select 1 from blog_post where tags like '%"B"%'`)).length, POST_COUNT)
  })

  test('deleted while it is renamed, is in no post', async () => {
    await db.run(updateTag(big, 'A', null))
    await db.one(applyTagChange(big, BATCH_SIZE))
    await db.run(hideTag(big))
    await runTask()
    assert.equal(await countConsistentPosts(), POST_COUNT)
    assert.equal((await query('select 1 from blog_post_tag where tag_id = $1', [big])).length, 0)
  })

  test('deleted, disappears from a post that gets other tags before the job reaches it', async () => {
    await db.run(hideTag(big))
    const [last] = await query('select max(id)::int as id from blog_post')
    await query(
      `insert into blog_post_tag (post_id, tag_id) select $1, id from blog_tag where slug = 'small' on conflict do nothing`,
      [last!.id],
    )
    await query('delete from blog_post_tag where post_id = $1 and tag_id <> $2', [last!.id, big])
    assert.equal((await query('select tags from blog_post where id = $1', [last!.id]))[0]!.tags, '[]')
  })

  test('renamed to the same names, changes nothing', async () => {
    await db.run(updateTag(big, 'Big', 'big'))
    assert.equal(await db.maybeOne(findUnappliedTag()), null)
    assert.deepEqual(await db.one(applyTagChange(big, BATCH_SIZE)), { count: 0 })
  })
})
