import { z } from 'zod'
import {
  POST_ORDER,
  PUBLISHED_ORDER,
  PUBLISHED_TAGGED_ORDER,
  readPostById,
  readPosts,
  readPostsByStatus,
  readPostsByTag,
  readPublishedPost,
  readPublishedPosts,
  readPublishedPostsByTag,
  readTags,
  TAG_ORDER,
  TAGGED_POST_ORDER,
} from '../../../sql/blog/posts.ts'
import { POST_SEARCH_ORDER, searchPosts, searchPublishedPosts } from '../../../sql/blog/search.ts'
import { buildPageQueryFields, buildPageValues } from '../../pipeline/request/lists.ts'
import { type Answer, answerCompactJson, route } from '../../pipeline/route.ts'
import {
  answerPost,
  MovedPost,
  PAGE_SIZES,
  Post,
  PostList,
  PostParams,
  SlugParams,
  Status,
  TagList,
  TagSlug,
} from './shapes.ts'

const Search = z
  .string()
  .max(500)
  .transform((text) => text.trim() || undefined)
  .optional()
const SEARCH_DESCRIPTION = `With \`search\`, lists the best matches of title, excerpt and content first, each with a \`snippet\`. Every \
word must occur, as in searches of documents: also as the beginning of a word, with another ending, or with one wrong \
letter. "Quoted words" must occur together; a word or phrase after \`-\` must not occur.`

/** Redirects to a slug. Clients ask again each time, because a post may take its former slug back. */
const redirectTo = <T>(slug: string): Answer<T> =>
  answerCompactJson<T>(JSON.stringify({ slug }), {
    status: 301,
    headers: [
      ['location', `/api/v1/blog/posts/${slug}`],
      ['cache-control', 'no-cache'],
    ],
  })

/** Routes for public reads, and for the list of all posts that editors see. */
export const readRoutes = [
  route({
    method: 'get',
    path: '/posts',
    summary: 'List published posts, newest first',
    description: SEARCH_DESCRIPTION,
    auth: 'public',
    query: z.object({
      ...buildPageQueryFields([PUBLISHED_ORDER, PUBLISHED_TAGGED_ORDER, POST_SEARCH_ORDER], PAGE_SIZES),
      tag: TagSlug.optional(),
      search: Search,
    }),
    response: PostList,
    reads: 'list',
    handle: async ({ query, reader }) => {
      if (query.search !== undefined) {
        const page = buildPageValues(query, POST_SEARCH_ORDER)
        return answerCompactJson(
          (await reader.text(searchPublishedPosts, [query.search, query.tag ?? null, ...page]))!,
        )
      }
      const values = buildPageValues(query, PUBLISHED_ORDER)
      const text =
        query.tag === undefined
          ? reader.text(readPublishedPosts, values)
          : reader.text(readPublishedPostsByTag, [query.tag, ...values])
      return answerCompactJson((await text)!)
    },
  }),

  route({
    method: 'get',
    path: '/posts/:post',
    summary: 'Get a published post',
    description: 'A former slug of a post that has been public redirects to the current one.',
    auth: 'public',
    params: SlugParams,
    response: Post,
    alsoAnswers: {
      301: ['The slug has changed. `Location` has the new address, and the body the new slug', MovedPost],
    },
    errors: ['post.missing'],
    handle: async ({ params, edge }) => {
      const text = await edge.reader.text(readPublishedPost, [params.post])
      return text === null || text.startsWith('{') ? answerPost(text) : redirectTo(text)
    },
  }),

  route({
    method: 'get',
    path: '/admin/posts',
    summary: 'List all posts, newest first',
    description: `Includes drafts and archived posts. ${SEARCH_DESCRIPTION}`,
    query: z.object({
      ...buildPageQueryFields([POST_ORDER, TAGGED_POST_ORDER, POST_SEARCH_ORDER], PAGE_SIZES),
      tag: TagSlug.optional(),
      search: Search,
      status: Status.optional(),
    }),
    response: PostList,
    auth: 'editor',
    reads: 'list',
    handle: async ({ query, reader }) => {
      const { tag, status, search } = query
      if (search !== undefined) {
        const page = buildPageValues(query, POST_SEARCH_ORDER)
        return answerCompactJson(
          (await reader.text(searchPosts, [search, tag ?? null, status ?? null, ...page]))!,
        )
      }
      const values = buildPageValues(query, POST_ORDER)
      const text =
        tag !== undefined
          ? reader.text(readPostsByTag, [tag, status ?? null, ...values])
          : status === undefined
            ? reader.text(readPosts, values)
            : reader.text(readPostsByStatus, [status, ...values])
      return answerCompactJson((await text)!)
    },
  }),

  route({
    method: 'get',
    path: '/admin/posts/:post',
    summary: 'Get a post, whatever its status',
    auth: 'editor',
    params: PostParams,
    response: Post,
    errors: ['post.missing'],
    handle: async ({ params, edge }) => answerPost(await edge.reader.text(readPostById, [params.post])),
  }),

  route({
    method: 'get',
    path: '/tags',
    summary: 'List tags by name',
    auth: 'public',
    query: z.object(buildPageQueryFields(TAG_ORDER, { max: 1000, fallback: 1000 })),
    response: TagList,
    reads: 'list',
    handle: async ({ query, reader }) =>
      answerCompactJson((await reader.text(readTags, buildPageValues(query)))!),
  }),
]
