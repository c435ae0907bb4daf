import { z } from 'zod'
import {
  readPosts,
  readPostsOf,
  readPostsTagged,
  readPublished,
  readPublishedPost,
  readPublishedTagged,
  readTags,
} from '../../../sql/blog.ts'
import { json, route, verbatim } from '../../pipeline/route.ts'
import { found, PAGED, Post, PostList, SlugParams, Status, TagList } from './shapes.ts'

// Even a list without pages is bounded.
const MOST_TAGS = 1000

const offset = ({ page, page_size }: { page: number; page_size: number }) =>
  [(page - 1) * page_size, page_size, page] as const

/** What everybody may read, and the lists for editors. */
export const readRoutes = [
  route({
    method: 'get',
    path: '/posts',
    summary: 'List published posts, newest first',
    auth: 'public',
    query: z.object(PAGED),
    response: PostList,
    reads: 'list',
    handle: async ({ query, reader }) => {
      const values = offset(query)
      const text =
        query.tag === undefined
          ? reader.text(readPublished, values)
          : reader.text(readPublishedTagged, [...values, query.tag])
      return verbatim((await text)!)
    },
  }),

  route({
    method: 'get',
    path: '/posts/:post',
    summary: 'Get a published post',
    auth: 'public',
    params: SlugParams,
    response: Post,
    errors: ['post.missing'],
    handle: async ({ params, edge }) => found(await edge.reader.text(readPublishedPost, [params.post])),
  }),

  route({
    method: 'get',
    path: '/admin/posts',
    summary: 'List all posts, including drafts and archived ones, newest first',
    query: z.object({ ...PAGED, status: Status.optional() }),
    response: PostList,
    auth: 'editor',
    reads: 'list',
    handle: async ({ query, reader }) => {
      const { tag, status } = query
      const values = offset(query)
      const text =
        tag !== undefined
          ? reader.text(readPostsTagged, [...values, tag, status ?? null])
          : status === undefined
            ? reader.text(readPosts, values)
            : reader.text(readPostsOf, [...values, status])
      return verbatim((await text)!)
    },
  }),

  route({
    method: 'get',
    path: '/tags',
    summary: 'List tags by name',
    description: `Returns at most ${MOST_TAGS}; \`total\` counts all.`,
    auth: 'public',
    response: TagList,
    reads: 'list',
    handle: async ({ reader }) => json((await reader.text(readTags, [MOST_TAGS]))!),
  }),
]
