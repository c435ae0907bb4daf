import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { buildMessageSchema } from '../../edge/routes/webhooks/events.ts'
import { until } from '../until.ts'
import { createKey } from './api-keys-help.ts'
import { createBlog, importFile } from './blog-help.ts'
import { assertRefused } from './orgs-help.ts'
import { startOwnWorker } from './own-worker.ts'

/** Scheduled posts become public at their time, and each post is announced once. */

const { api, call, editor, write, publish, query, url, people } = await createBlog()
const [writer] = await people(1, 'moderator')
await startOwnWorker(url, 'blog,system', {})

const FUTURE = '2100-01-01T10:00:00.000Z'
const soon = (ms: number): string => new Date(Date.now() + ms).toISOString()
const go = (id: number, published_at?: string, who = editor) =>
  call(who, 'POST', `/posts/${id}/publish`, published_at === undefined ? {} : { json: { published_at } })
const seen = async (slug: string): Promise<number> => (await call(null, 'GET', `/posts/${slug}`)).status

/** Reads the announcements of a post that endpoints of the service get. */
async function readAnnouncements(id: number): Promise<readonly Record<string, unknown>[]> {
  const rows = await query(
    `select d.body from webhook_delivery d join webhook_endpoint e on e.id = d.endpoint_id
     where e.account_id is null and d.type = 'post.published' and (d.body::json -> 'data' ->> 'id')::bigint = $1 order by d.id`,
    [id],
  )
  return rows.map(({ body }) => buildMessageSchema('post.published').parse(JSON.parse(body as string)))
}
const untilAnnounced = (id: number) =>
  until('the post is announced', async () => (await readAnnouncements(id)).length > 0)

before(async () => {
  for (const account of [null, editor.id, writer!.id])
    await query(
      `insert into webhook_endpoint (secret, account_id, url, host, events)
       values ('aaaaaaaa.AAAA', $1, 'https://example.com/', 'example.com', array['post.published'])`,
      [account],
    )
})

describe('scheduled publishing', () => {
  test('hides a post until its time, and announces it then', async () => {
    const { id, slug } = await write()
    const at = soon(3000)
    const answer = await go(id, at)
    assert.deepEqual([answer.status, answer.json.status, answer.json.published_at], [200, 'published', at])
    assert.deepEqual([await seen(slug), (await readAnnouncements(id)).length], [404, 0])
    await until('the post is public', async () => (await seen(slug)) === 200)
    await untilAnnounced(id)
    const [message, ...more] = await readAnnouncements(id)
    const { content, ...shown } = (await call(null, 'GET', `/posts/${slug}`)).json
    assert.deepEqual([more, message!.account_id, message!.data], [[], editor.id, shown])
  })

  test('can be moved, cancelled by archiving, and done immediately', async () => {
    const { id, slug } = await write()
    assert.equal((await go(id, FUTURE)).json.published_at, FUTURE)
    const later = '2101-01-01T10:00:00.000Z'
    assert.equal((await go(id, later)).json.published_at, later)
    const archived = (await call(editor, 'POST', `/posts/${id}/archive`)).json
    assert.deepEqual([archived.status, archived.published_at], ['archived', null])
    assert.equal((await go(id, FUTURE)).json.published_at, FUTURE)
    const published = (await go(id)).json
    assert.ok(published.published_at <= soon(0))
    assert.equal(await seen(slug), 200)
    assert.equal((await readAnnouncements(id)).length, 1)
  })

  test('accepts a past time of a post that has not been public', async () => {
    const { id, slug } = await write()
    const past = '2020-02-29T12:00:00.000Z'
    assert.equal((await go(id, '2020-02-29T13:00:00+01:00')).json.published_at, past)
    assert.equal(await seen(slug), 200)
    assert.equal((await readAnnouncements(id)).length, 1)
  })

  test('never moves the date of a post that has been public', async () => {
    const { id, published_at, slug } = await publish()
    for (const at of [undefined, FUTURE, '2020-02-29T12:00:00Z'])
      assert.equal((await go(id, at)).json.published_at, published_at)
    await call(editor, 'POST', `/posts/${id}/archive`)
    assertRefused(await go(id, FUTURE), 409, 'The post has been public, so it cannot be scheduled')
    assert.equal(await seen(slug), 404)
    assert.equal((await go(id, '2020-02-29T12:00:00Z')).json.published_at, published_at)
    assert.equal((await readAnnouncements(id)).length, 1)
  })

  test('refuses other times, fields and posts', async () => {
    const { id } = await write()
    for (const published_at of [
      'soon',
      '2026-13-01T00:00:00Z',
      '',
      5,
      '9999-12-31T23:00:00-05:00',
      '0001-01-01T00:00:00+05:00',
    ])
      assertRefused(await call(editor, 'POST', `/posts/${id}/publish`, { json: { published_at } }), 422)
    assertRefused(await call(editor, 'POST', `/posts/${id}/publish`, { json: { at: FUTURE } }), 422)
    assertRefused(await go(999_999_999, FUTURE), 404, 'Post not found')
    assert.equal(
      (await call(editor, 'POST', `/posts/${id}/publish`, { json: { published_at: null } })).status,
      200,
    )
  })

  test('announces each post once, however it is changed at its time', async () => {
    const posts = await Promise.all(Array.from({ length: 8 }, () => write()))
    const at = soon(1200)
    await Promise.all(posts.map(({ id }) => go(id, at)))
    await until('the time has come', async () => (await seen(posts[0]!.slug)) === 200)
    await Promise.all(
      posts.flatMap(({ id }) => [
        go(id),
        call(editor, 'POST', `/posts/${id}/archive`),
        go(id, at),
        call(editor, 'PUT', `/posts/${id}`, { json: { title: 'Changed' } }),
      ]),
    )
    for (const { id } of posts) {
      await untilAnnounced(id)
      await call(editor, 'POST', `/posts/${id}/archive`)
      await go(id)
    }
    await until('no job is left', async () => {
      const [row] = await query(
        `select count(*)::int as n from job where name = 'blog.announce' and finished_at is null and run_at < now() + interval '1 hour'`,
      )
      return row!.n === 0
    })
    for (const { id } of posts) assert.equal((await readAnnouncements(id)).length, 1)
  })

  test('announces a post that is archived or deleted before the job runs', async () => {
    const { id, slug } = await write()
    // Takes the place of a due post whose job is late.
    const makeDue = (post: number) =>
      query(
        `update blog_post set status = 'published', published_at = now() - interval '1 s' where id = $1`,
        [post],
      )
    await makeDue(id)
    await call(editor, 'POST', `/posts/${id}/archive`)
    assert.deepEqual([(await readAnnouncements(id)).length, await seen(slug)], [1, 404])
    const { id: other } = await write()
    await makeDue(other)
    assert.equal((await call(editor, 'DELETE', `/posts/${other}`)).status, 204)
    assert.equal((await readAnnouncements(other)).length, 1)
  })

  test('outlives a lost job: the job of another post announces both', async () => {
    const { id } = await write()
    await query(
      `update blog_post set status = 'published', published_at = now() - interval '1 day' where id = $1`,
      [id],
    )
    const { id: other } = await write()
    await go(other, soon(300))
    await untilAnnounced(id)
    await untilAnnounced(other)
  })

  test('is denied to imports of posts that have been public', async () => {
    const post = await publish({ slug: 'stays-public' })
    const past = '2020-01-01T00:00:00.000Z'
    const overwrite = async (date: string, status = 'published') => {
      const file = JSON.stringify([{ title: 'New', slug: post.slug, status, published_at: date }])
      const answer = await importFile(api, editor, 'posts.json', file, { query: '?on_conflict=overwrite' })
      assert.equal(answer.json.updated, 1, answer.text)
      return query('select title, status, iso(published_at) as published_at from blog_post where id = $1', [
        post.id,
      ])
    }
    assert.deepEqual(await overwrite(FUTURE), [
      { title: 'New', status: 'published', published_at: post.published_at },
    ])
    assert.equal(await seen(post.slug), 200)
    assert.deepEqual(await overwrite(past), [{ title: 'New', status: 'published', published_at: past }])
    assert.deepEqual(await overwrite(FUTURE, 'draft'), [
      { title: 'New', status: 'draft', published_at: past },
    ])
    assertRefused(await go(post.id, FUTURE), 409, 'The post has been public, so it cannot be scheduled')
    assert.equal((await readAnnouncements(post.id)).length, 1)
  })

  test('accepts times far ahead and long ago', async () => {
    for (const at of ['9998-12-31T23:59:59.999Z', '0002-01-01T00:00:00.000Z']) {
      const answer = await go((await write()).id, at)
      assert.deepEqual([answer.status, answer.json.published_at], [200, at])
    }
  })

  test('adds one job for posts of one time', async () => {
    const at = '2099-05-05T05:05:05.000Z'
    for (const { id } of [await write(), await write()]) await go(id, at)
    const jobs = await query(
      `select status, owner_id from job where name = 'blog.announce' and payload ->> 'at' = $1`,
      [at],
    )
    assert.deepEqual(jobs, [{ status: 'scheduled', owner_id: null }])
  })
})

describe('the event post.published', () => {
  test('reaches the endpoints of the author and of the service, and needs the scope blog:read', async () => {
    const { id } = (await call(writer!, 'POST', '/posts', { json: { title: 'Hers' } })).json
    await go(id, undefined, editor)
    const receivers = await query(
      `select e.account_id from webhook_delivery d join webhook_endpoint e on e.id = d.endpoint_id
       where (d.body::json -> 'data' ->> 'id')::bigint = $1 order by e.id`,
      [id],
    )
    assert.deepEqual(
      receivers.map(({ account_id }) => account_id),
      [null, writer!.id],
    )
    const json = { url: 'https://example.com/', events: ['post.published'] }
    const { key: token } = await createKey(api, editor, { scopes: ['webhooks:write'] })
    assertRefused(
      await api.post('/api/v1/webhooks', { token, json }),
      403,
      'The API key lacks the scope blog:read',
    )
    const { key } = await createKey(api, editor, { scopes: ['webhooks:write', 'blog:read'] })
    assert.equal((await api.post('/api/v1/webhooks', { token: key, json })).status, 201)
  })

  test('tells nothing of imported posts that are public already, and tells of those to come', async () => {
    const at = soon(5000)
    const text = (title: string, date: string) => ({
      title,
      slug: title,
      status: 'published',
      published_at: date,
      author_name: 'Ann',
    })
    const file = JSON.stringify([text('old-one', '2020-01-01T00:00:00Z'), text('new-one', at)])
    const upload = await importFile(api, editor, 'posts.json', file)
    assert.equal(upload.json.created, 2, upload.text)
    const [old, next] = await query(
      `select id::int from blog_post where slug in ('old-one', 'new-one') order by published_at`,
    )
    await untilAnnounced(next!.id as number)
    const [message] = await readAnnouncements(next!.id as number)
    assert.deepEqual([message!.account_id, (await readAnnouncements(old!.id as number)).length], [null, 0])
    // An overwritten post is public already, so it stays unannounced.
    const draft = await write({ slug: 'over-me' })
    const over = JSON.stringify([text('over-me', '2020-01-01T00:00:00Z')])
    assert.equal(
      (await importFile(api, editor, 'posts.json', over, { query: '?on_conflict=overwrite' })).json.updated,
      1,
    )
    await call(editor, 'POST', `/posts/${draft.id}/archive`)
    await go(draft.id)
    assert.deepEqual(await readAnnouncements(draft.id), [])
  })
})
