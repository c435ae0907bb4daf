import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { deleteAccount } from '../../sql/accounts/deletions.ts'
import { readFeed, readTaggedFeed } from '../../sql/blog/feeds.ts'
import {
  applyTagChange,
  deletePost,
  findUnappliedTag,
  hideTag,
  insertPost,
  insertTag,
  lockPost,
  lockTagsBySlug,
  readPost,
  readPosts,
  readPostsByStatus,
  readPostsByTag,
  readPublishedPost,
  readPublishedPosts,
  readPublishedPostsByTag,
  readTags,
  setTags,
  updatePost,
  updateTag,
} from '../../sql/blog/posts.ts'
import {
  deleteExpiredPreviews,
  deletePreviews,
  insertPreview,
  readPreviewedPost,
} from '../../sql/blog/previews.ts'
import { announceDuePosts, archivePost, publishPost, readNextPublication } from '../../sql/blog/publishing.ts'
import { keepRevisions, readRevision, readRevisions, readVersion } from '../../sql/blog/revisions.ts'
import { searchPosts, searchPublishedPosts, storePostWords } from '../../sql/blog/search.ts'
import {
  deleteAbandonedImports,
  findOrCreateTags,
  type ImportedPost,
  insertPosts,
  lockPostsBySlug,
  overwritePosts,
  readExportedPosts,
  setTagsOfPosts,
} from '../../sql/blog/transfer.ts'
import { connect } from '../../sql/connections/driver.ts'
import type { Query } from '../../sql/db.ts'
import { createTestDatabase, vacuumAnalyze } from '../database.ts'
import { assertWriteByIndex, daysAgo, planRead, testReads } from './plans-help.ts'

/** Queries of the blog use an index, with 2,500 posts and 2,000 tags. */

const { url, db, query } = await createTestDatabase()
await query(
  `insert into account (email, password_hash) select 'a' || n || '@example.com', 'x' from generate_series(1, 1500) n`,
)
await query(
  `insert into blog_tag (name, slug) select 'Tag ' || n, 'tag-' || n from generate_series(1, 2000) n`,
)
await query(
  `insert into blog_post (title, slug, content, status, author_id, created_at, published_at)
   select 'Post ' || n, 'post-' || n, repeat('text ', 300), case n % 10 when 0 then 'draft' when 1 then 'archived' else 'published' end,
     1 + n % 1500, now() - n * interval '1 hour', now() - n * interval '1 hour' from generate_series(1, 2500) n`,
)
await query(
  `insert into blog_post_tag (post_id, tag_id) select p, 1 + (p * 7 + t * 13) % 2000 from generate_series(1, 2500) p, generate_series(1, 3) t`,
)
await query(`insert into blog_redirect (slug, post_id) select 'former-' || id, id from blog_post`)
await query(
  `insert into blog_revision (post_id, title, slug, content, tags, updated_at, replaced_by, editor_id)
   select 1 + n % 500, 't', 's', 'c', '[]', now(), 'update', 1 + n % 1500 from generate_series(1, 5000) n`,
)
await query(
  `insert into blog_preview (post_id, expires_at)
   select 1 + n % 500, now() + (n - 20) * interval '1 hour' from generate_series(1, 5000) n`,
)
await query(
  `insert into blog_upload (file_name, format, created_at) select 'x', 'zip', now() - n * interval '1 minute' from generate_series(1, 5000) n`,
)
await query(`insert into blog_upload_chunk (upload_id, ordinal, bytes) select id, 0, 'x' from blog_upload`)
await vacuumAnalyze(query)

const client = await connect({ url, applicationName: 'plans' })
after(() => client.end())

// Cursor in the middle of the posts.
const CURSOR = JSON.stringify([daysAgo(30), 7])
const reads = [
  planRead('published posts', readPublishedPosts, null, 0, 20),
  planRead('a later page', readPublishedPosts, null, 500, 100),
  planRead('posts after a cursor', readPublishedPosts, CURSOR, 0, 20),
  planRead('published posts of a tag', readPublishedPostsByTag, 'tag-5', null, 0, 20),
  planRead('all posts', readPosts, null, 0, 20),
  planRead('posts of a status', readPostsByStatus, 'draft', null, 0, 20),
  planRead('posts of a tag', readPostsByTag, 'tag-5', null, null, 0, 20),
  planRead('posts of a tag and status', readPostsByTag, 'tag-5', 'draft', null, 0, 20),
  planRead('a published post', readPublishedPost, 'post-5'),
  planRead('a former slug', readPublishedPost, 'former-5'),
  planRead('a search', searchPublishedPosts, 'post text', null, null, 0, 20),
  planRead('a search with a tag', searchPublishedPosts, 'text', 'tag-5', null, 0, 20),
  planRead('a search of all posts', searchPosts, 'text', null, null, null, 0, 20),
  planRead('a search with a tag and a status', searchPosts, 'text', 'tag-5', 'draft', null, 0, 20),
  planRead('a feed', readFeed),
  planRead('a feed of a tag', readTaggedFeed, 'tag-5'),
  planRead('a previewed post', readPreviewedPost, 5),
  planRead('revisions', readRevisions, 5, null, 0, 20),
  planRead('a revision', readRevision, 5, 4),
  planRead('export', readExportedPosts, 2500, null),
  planRead('export a status', readExportedPosts, 2500, 'published'),
]

async function planFirstPage(text: string): Promise<string> {
  const values = ['null::jsonb', '0', '20']
  const given = text.replace(/\$([123])::\w+/g, (_, n) => values[n - 1]!)
  const { rows } = await client.query<{ 'QUERY PLAN': string }>(`explain ${given}`)
  return rows.map((row) => row['QUERY PLAN']).join('\n')
}

describe('reads by index', () => {
  testReads(client, reads)

  test('the public list is read in index order, without sorting or counting posts', async () => {
    const plan = await planFirstPage(readPublishedPosts.text)
    assert.match(plan, /Index Only Scan using blog_post_published_idx on blog_post p/)
    assert.doesNotMatch(plan, /Seq Scan on blog_post\b|SubPlan/)
  })

  test('tags are read in index order', async () => {
    assert.match(await planFirstPage(readTags.text), /Index Scan using blog_tag_listed_idx/)
  })
})

const createImportedPost = (slug: string): ImportedPost => ({
  title: 't',
  slug,
  content: 'c',
  status: 'draft',
  excerpt: null,
  seo_title: null,
  seo_description: null,
  hero_image_url: null,
  author_name: undefined,
  created_at: undefined,
  updated_at: undefined,
  published_at: undefined,
})

describe('writes by index', () => {
  let n = 100
  const fields = {
    title: 't',
    content: '',
    excerpt: null,
    seo_title: null,
    seo_description: null,
    hero_image_url: null,
  }
  const author = { authorId: 1, authorName: 'n' }
  const writes: readonly [what: string, () => Query<unknown> | Promise<Query<unknown>>][] = [
    ['a post', () => readPost(5)],
    ['write', () => insertPost({ ...fields, ...author, slug: `new-${++n}` })],
    ['write with a taken slug', () => insertPost({ ...fields, ...author, slug: 'post-5' })],
    ['change', () => updatePost(++n, { title: 'x' })],
    ['store words', () => storePostWords([++n])],
    ['add a preview', () => insertPreview(++n, 60)],
    ['delete previews', () => deletePreviews(5)],
    ['remove previews', () => deleteExpiredPreviews(10)],
    [
      'keep a revision',
      () =>
        keepRevisions([{ id: ++n, title: 'New', tag_slugs: ['tag-5'] }], {
          reason: 'update',
          editor: { id: 1, name: 'n' },
          max: 5,
        }),
    ],
    ['a version', () => readVersion(5, 4)],
    ['rename', () => updatePost(++n, { slug: `renamed-${n}` })],
    ['lock', () => lockPost(5)],
    ['publish', () => publishPost(++n * 10, null)],
    ['schedule', () => publishPost(++n * 10, '2100-01-01T00:00:00Z')],
    ['archive', () => archivePost(++n)],
    ['announce', () => announceDuePosts(5)],
    ['the next publication', () => readNextPublication()],
    ['delete', () => deletePost(++n)],
    ['find tags', () => lockTagsBySlug(['tag-5', 'tag-6'])],
    ['set tags', () => setTags(++n, [5, 6])],
    ['add a tag', () => insertTag(`N${++n}`, `n${n}`)],
    ['change a tag', () => updateTag(++n, `M${n}`, null)],
    ['hide a tag', () => hideTag(++n)],
    [
      'apply a changed tag',
      async () => {
        await query('update blog_tag set applied_to = 0 where id = $1', [++n])
        return applyTagChange(n, 10)
      },
    ],
    [
      'apply a hidden tag',
      async () => {
        await db.run(hideTag(++n))
        return applyTagChange(n, 500)
      },
    ],
    ['a tag that is not applied', () => findUnappliedTag()],
    ['delete an author', () => deleteAccount(++n)],
    ['find slugs', () => lockPostsBySlug(['post-5', 'nowhere'])],
    [
      'import',
      () => insertPosts([createImportedPost(`i${++n}`), createImportedPost('post-7')], { id: 1, name: 'n' }),
    ],
    ['overwrite by import', () => overwritePosts([createImportedPost('post-8')])],
    [
      'make tags',
      () =>
        findOrCreateTags([
          { name: `Q${++n}`, slug: `q${n}` },
          { name: 'x', slug: 'tag-8' },
        ]),
    ],
    [
      'set tags of many',
      () =>
        setTagsOfPosts(
          [++n, n + 1],
          [
            { postId: n, tagId: 9 },
            { postId: n, tagId: 10 },
          ],
        ),
    ],
    ['remove uploads', () => deleteAbandonedImports(10)],
  ]
  for (const [what, make] of writes) test(what, () => assertWriteByIndex(client, make, 'blog'))
})
