import assert from 'node:assert/strict'
import { test } from 'node:test'
import { archivePost, publishPost } from '../../sql/blog/publishing.ts'
import { noRows, type Query, sql } from '../../sql/db.ts'
import { createTestDatabase } from '../database.ts'
import { until } from '../until.ts'

/** Requests that began before the time of a post reach its row after its announcement. */

const { db, query } = await createTestDatabase()

/** Runs a statement in a transaction that is older than the time of a post, after the post was announced. Returns the post. */
async function runLate(status: string, statement: (id: number) => Query<unknown>) {
  const outcome = await db.transaction(async (tx) => {
    await tx.run(sql.type(noRows)`select now()`)
    const [row] = await query(
      `insert into blog_post (title, slug, status, published_at)
       values ('Post', 'post-' || gen_random_uuid(), 'published', clock_timestamp() + interval '50 ms')
       returning id::int, iso(published_at) as at`,
    )
    const { id, at } = row as { id: number; at: string }
    await until('the post is announced', async () => {
      const [announced] = await query('select blog_announce(array[$1::bigint]) as count', [id])
      return announced!.count === 1
    })
    await query('update blog_post set status = $2 where id = $1', [id, status])
    return { id, at, result: await tx.one(statement(id)) }
  })
  const [post] = await query('select status, iso(published_at) as at from blog_post where id = $1', [
    outcome.id,
  ])
  assert.equal(post!.at, outcome.at)
  return { status: post!.status, result: outcome.result }
}

const LATER = '2100-01-01T00:00:00Z'

test('an archived post keeps its time', async () => {
  const { status, result } = await runLate('published', archivePost)
  assert.deepEqual([status, result], ['archived', { found: true }])
})

test('a published post keeps its time', async () => {
  for (const at of [null, LATER]) {
    const { status, result } = await runLate('published', (id) => publishPost(id, at))
    assert.deepEqual([status, result], ['published', { outcome: 'public' }])
  }
})

test('an archived post is published at its time, and is never scheduled', async () => {
  const again = await runLate('archived', (id) => publishPost(id, null))
  assert.deepEqual([again.status, again.result], ['published', { outcome: 'public' }])
  const { status, result } = await runLate('archived', (id) => publishPost(id, LATER))
  assert.deepEqual([status, result], ['archived', { outcome: 'fixed' }])
})
