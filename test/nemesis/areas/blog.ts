import type { MakeArea } from '../area.ts'
import { findMissingOrDuplicate } from '../area.ts'

interface Post {
  readonly title: string
  readonly tag: string
  readonly content: string
  readonly status: 'draft' | 'published' | 'removed'
}

/** Creates, publishes, changes and deletes posts. */
export const blog: MakeArea = (admin) => {
  const posts: Post[] = []
  const tags: string[] = []

  return {
    act: async () => {
      const { chance } = admin
      const tag = admin.createWord()
      const made = await admin.post('/api/v1/blog/tags', { json: { name: tag } })
      tags.push(tag)
      const title = admin.createWord()
      const json = { title, content: 'First', tag_slugs: [made.json.slug] }
      const { json: post } = await admin.post('/api/v1/blog/posts', { json })
      const at = `/api/v1/blog/posts/${post.id}`
      let status: Post['status'] = 'draft'
      if (chance.isHit(0.7)) {
        await admin.post(`${at}/publish`)
        status = 'published'
      }
      const content = `Second ${title}`
      await admin.ask(at, { method: 'PUT', json: { content } })
      if (chance.isHit(0.2)) {
        const { status: code } = await admin.ask(at, { method: 'DELETE', done: [404] })
        // A retry may find a deletion that the standby lacks, and that a failover undoes.
        if (code === 404 && admin.world.mode === 'standby') return
        status = 'removed'
      }
      posts.push({ title, tag, content, status })
    },
    judge: async () => {
      const rows = await admin.world.query(
        `select p.title, p.content, p.status, array_agg(t.name) as tags from blog_post p
         left join blog_post_tag on post_id = p.id left join blog_tag t on t.id = tag_id group by p.id`,
      )
      const names = await admin.world.query('select name from blog_tag')
      const found = findMissingOrDuplicate(
        'tag',
        tags,
        names.map(({ name }) => String(name)),
      )
      for (const { title, tag, content, status } of posts) {
        const own = rows.filter((row) => row.title === title).map(({ title: _, ...rest }) => rest)
        const wanted = status === 'removed' ? [] : [{ content, status, tags: [tag] }]
        if (JSON.stringify(own) !== JSON.stringify(wanted))
          found.push(`post ${title} is ${JSON.stringify(own)}, expected ${JSON.stringify(wanted)}`)
      }
      const [wrong] = await admin.world.query(
        `select (select coalesce(sum(posts), 0)::int from blog_post_count) as counted, (select count(*)::int from blog_post) as there`,
      )
      if (wrong!.counted !== wrong!.there) found.push(`post count differs: ${JSON.stringify(wrong)}`)
      return found
    },
  }
}
