import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { connect } from '../../sql/connections/driver.ts'
import { createCaller } from '../edge/blog-help.ts'
import { createPeopleMaker, type Person } from '../edge/orgs-help.ts'
import { Client } from '../service.ts'
import { until } from '../until.ts'
import { getSharedService } from './shared-service.ts'

/** A real worker renames a tag of thousands of posts. */

const POSTS = 4000

const { api, query, url } = await getSharedService()
const call = createCaller(api)
const [editor] = (await createPeopleMaker(api, query)(1, 'moderator')) as [Person]
const editing = await connect({ url, applicationName: 'editing' })
after(() => editing.end())

test('posts can be edited while the job runs, and its progress is visible', async () => {
  const made = await call(editor, 'POST', '/tags', { json: { name: 'Old' } })
  assert.equal(made.status, 201, made.text)
  const { id } = made.json
  await query(
    `with made as (insert into blog_post (title, slug, status, published_at)
       select 'P' || n, 'p-' || n, 'published', now() from generate_series(1, $2) n returning id)
     insert into blog_post_tag (post_id, tag_id) select id, $1 from made`,
    [id, POSTS],
  )
  const middle = Number((await query(`select id from blog_post where slug = 'p-${POSTS / 2}'`))[0]!.id)
  // An editor holds a lock on a post in the middle, which blocks the job there.
  await editing.query('begin')
  await editing.query('select from blog_post where id = $1 for update', [middle])
  assert.equal((await call(editor, 'PUT', `/tags/${id}`, { json: { name: 'New' } })).status, 200)
  const [job] = await query(`select id from job where name = 'blog.retag'`)
  const client = new Client(api.port)
  client.token = editor.token
  const stream = await client.stream(`/api/v1/jobs/${job!.id}/events`)
  await until('the job waits for the locked post', async () => {
    const [waiting] = await query(
      `select 1 from pg_stat_activity where datname = current_database() and wait_event in ('transactionid', 'tuple')`,
    )
    return waiting
  })
  for (const post of [middle - 1900, middle + 1900]) {
    const answer = await call(editor, 'PUT', `/posts/${post}`, { json: { title: `Edited ${post}` } })
    assert.deepEqual([answer.status, answer.json.title], [200, `Edited ${post}`])
    assert.equal(answer.json.tags[0].name, post < middle ? 'New' : 'Old')
  }
  await editing.query('commit')
  const frames = await stream.waitForEnd()
  assert.deepEqual(frames.at(-1)?.data.result, { posts: POSTS - 500 })
  assert.ok(frames.some(({ data }) => data.label === `Tag ${id}: posts`))
  assert.equal((await query(`select 1 from blog_post where tags like '%"New"%'`)).length, POSTS)
})
