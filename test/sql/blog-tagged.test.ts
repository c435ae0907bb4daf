import assert from 'node:assert/strict'
import { test } from 'node:test'
import { applyTagChange, hideTag } from '../../sql/blog/posts.ts'
import { archivePost, publishPost } from '../../sql/blog/publishing.ts'
import { until } from '../until.ts'
import { sharedDatabase } from './shared-database.ts'

/** Rows that link a tag to its posts copy columns of the posts, and follow every change of a post. */

const { db, query } = await sharedDatabase()

async function addLinkedPost(): Promise<{ post: number; tag: number }> {
  const [post] = await query(
    `insert into blog_post (title, slug) values ('t', 'post-' || gen_random_uuid()) returning id`,
  )
  const [tag] = await query(
    `with fresh as (select gen_random_uuid()::text as name) insert into blog_tag (name, slug) select name, name from fresh returning id`,
  )
  await query('insert into blog_post_tag (post_id, tag_id) values ($1, $2)', [post!.id, tag!.id])
  return { post: Number(post!.id), tag: Number(tag!.id) }
}

const findDifferences = () =>
  query(`select pt.* from blog_post_tag pt join blog_post p on p.id = pt.post_id
    where (pt.status, pt.created_at, pt.published_at) is distinct from (p.status, p.created_at, p.published_at)`)

test('links follow a post when it is published, archived or moved in time', async () => {
  const { post } = await addLinkedPost()
  assert.deepEqual(await findDifferences(), [])
  await db.maybeOne(publishPost(post, null))
  assert.deepEqual(await findDifferences(), [])
  assert.equal(
    (await query('select status from blog_post_tag where post_id = $1', [post]))[0]!.status,
    'published',
  )
  await db.maybeOne(archivePost(post))
  await query(
    `update blog_post set created_at = now() - interval '1 year', published_at = now() where id = $1`,
    [post],
  )
  assert.deepEqual(await findDifferences(), [])
})

test('a link that is added while its post is published gets the new state', async () => {
  const { post } = await addLinkedPost()
  const { tag } = await addLinkedPost()
  const added = db.transaction(async (tx) => {
    await tx.maybeOne(publishPost(post, null))
    const link = query('insert into blog_post_tag (post_id, tag_id) values ($1, $2)', [post, tag])
    await until('the link waits for the post', async () => {
      const waiting = await query(
        `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
         and query ~ '^insert into blog_post_tag'`,
      )
      return waiting.length > 0
    })
    return { link }
  })
  await (await added).link
  assert.deepEqual(await findDifferences(), [])
})

test('publishing a post while its tag is deleted does not deadlock', async () => {
  const posts = await Promise.all(Array.from({ length: 4 }, addLinkedPost))
  for (const { tag } of posts) await db.run(hideTag(tag))
  await Promise.all(
    posts.flatMap(({ post, tag }) => [
      db.one(applyTagChange(tag, 10)),
      db.maybeOne(publishPost(post, null)),
      db.maybeOne(archivePost(post)),
    ]),
  )
  assert.deepEqual(await findDifferences(), [])
})
