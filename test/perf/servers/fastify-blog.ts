import type { AddressInfo } from 'node:net'
import Fastify from 'fastify'
import pg from 'pg'
import { readPublishedPosts } from '../../../sql/blog/posts.ts'

/**
 * The reference for the public list: an ordinary Fastify server with a `pg` pool that reads the rows and their count
 * and builds the JSON. With `STATEMENT=ours` it forwards JSON that our statement builds.
 */

const { DATABASE_URL, POOL_SIZE, STATEMENT } = process.env
const pool = new pg.Pool({ connectionString: DATABASE_URL, max: Number(POOL_SIZE) })

const ROWS = {
  name: 'rows',
  text: `select p.id::int, p.title, p.slug, p.excerpt, p.content, p.status, p.author_id, p.author_name, p.created_at, p.updated_at,
      p.published_at, p.seo_title, p.seo_description, p.hero_image_url,
      array(select json_build_object('id', t.id, 'name', t.name, 'slug', t.slug, 'created_at', iso(t.created_at))
        from blog_post_tag pt join blog_tag t on t.id = pt.tag_id where pt.post_id = p.id order by lower(t.name)) as tags
    from blog_post p where p.status = 'published' order by p.published_at desc, p.id desc limit $1 offset $2`,
}
const TOTAL = {
  name: 'total',
  text: `select count(*)::int as total from blog_post where status = 'published'`,
}

async function buildFromRows(page: number, size: number): Promise<object> {
  const [posts, total] = await Promise.all([
    pool.query({ ...ROWS, values: [size, (page - 1) * size] }),
    pool.query<{ total: number }>(TOTAL),
  ])
  return { posts: posts.rows, total: total.rows[0]!.total, total_is_exact: true, page, page_size: size }
}

async function readBuiltJson(page: number, size: number): Promise<string> {
  const { rows } = await pool.query<[string]>({
    ...readPublishedPosts,
    values: [null, (page - 1) * size, size],
    rowMode: 'array',
  })
  return rows[0]![0]
}

const app = Fastify({ logger: false })
app.get<{ Querystring: { page?: string; page_size?: string } }>(
  '/api/v1/blog/posts',
  async (request, reply) => {
    const { page = '1', page_size: size = '20' } = request.query
    const read = STATEMENT === 'ours' ? readBuiltJson : buildFromRows
    return reply.type('application/json; charset=utf-8').send(await read(Number(page), Number(size)))
  },
)
await app.listen({ host: '127.0.0.1', port: 0 })
process.on('disconnect', () => process.exit())
process.on('SIGTERM', () => process.exit())
process.send!({ port: (app.server.address() as AddressInfo).port })
