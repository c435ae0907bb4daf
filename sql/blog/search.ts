import { noRows, type Query, sql } from '../db.ts'
import { buildListText, type PageValues } from '../reads/lists.ts'
import type { ReadStatement } from '../reads/reader.ts'
import {
  buildRankedCte,
  buildTermCte,
  IS_WHOLE,
  MAX_RANKED_MATCHES,
  SCORED_CTES,
  SIZE_CTES,
} from '../search/rank.ts'
import { isPublic } from './posts.ts'

/** Search of posts. */

// Fewer than of pages, because anybody may search.
const PHRASE_CANDIDATES = 1000
// Stands for the blog where texts have owners, see `blog_post_part`.
const BLOG_OWNER = '-1'

/** Indexes the words of posts, for searches by a part of a word, by a stem, or with a misspelling. Call it last. */
export const storePostWords = (ids: readonly number[]): Query<unknown> =>
  sql.type(noRows)`
    select search_words_store(array_agg(-1), array_agg(search)) from blog_post_part where post_id = any(${sql.array([...ids], 'int8')})`

/** Sort order of search results. */
export const POST_SEARCH_ORDER = { 'found.rank': 'real', 'found.id': 'bigint' } as const

const matchesWords = (query: string): string => `owned_vector(${BLOG_OWNER}, p.search) @@ ${query}`

// `offset 0` forces a lookup by key for each post. The planner might otherwise join all parts.
const buildPartsQuery = (post: string): string =>
  `(select * from blog_post_part part where part.post_id = ${post} offset 0)`

interface PostFilter {
  /** Condition on the posts of the result. */
  readonly where: string
  /** Queries for the newest ids of these posts. Each finds them in index order, and only one finds any. */
  readonly newest: readonly string[]
}

/** Returns the CTEs that find the matching posts and their ranks. $1 is the search. */
const buildFoundCte = ({ where, newest }: PostFilter): string => `
  with ${buildTermCte(BLOG_OWNER, '$1::text', PHRASE_CANDIDATES)}, hit as materialized (
    select t.n, t.most, t.exact, t.wide, possible.*, not t.is_phrase or possible.search @@ t.wide as matches
    from term t cross join lateral (
      select p.post_id as id, p.search from blog_post_part p where ${matchesWords('t.words')} limit t.most + 1) possible
    where not t.negated
  ), ${SIZE_CTES}, newest as materialized (
    ${newest.map((query) => `(${query} limit ${MAX_RANKED_MATCHES})`).join(' union all ')}
  ), ${buildRankedCte({ id: 'post_id', texts: 'blog_post_part', textsOf: buildPartsQuery, hasWords: matchesWords })}, ${SCORED_CTES}, found as materialized (
    select p.id, scored.rank from scored join blog_post p using (id)
    where ${where} and not exists (
      select from term t left join size using (n) where not t.negated and t.n <> all(scored.terms)
        and not (coalesce(size.is_cut, false) and exists (select from ${buildPartsQuery('p.id')} part where part.search @@ t.wide))
    ) and not exists (
      select from term t where t.negated and exists (select from ${buildPartsQuery('p.id')} part where part.search @@ t.exact))
  )`

// The words around the first match in the content; the beginning of the content if only the title matches.
const SNIPPET_JSON = `(
  select to_json(coalesce(
    (select search_snippet(p.content, part.part - 1, part.search, sought.query) from ${buildPartsQuery('p.id')} part
      where part.part > 0 and part.search @@ sought.query order by part.part limit 1),
    search_snippet(left(p.content, 1000), 0, ''::tsvector, sought.query)))
  from (select search_any_of(array_agg(wide)) as query from term where not negated) sought)`

const buildSearchText = (parameters: number, filter: PostFilter): string => `
  ${buildFoundCte(filter)}
  ${buildListText(
    'posts',
    {
      table: 'found',
      row: 'found',
      parameters,
      where: 'true',
      order: POST_SEARCH_ORDER,
      direction: 'desc',
      join: 'join blog_post p on p.id = found.id',
      item: `concat(p.fields, ',"tags":', p.tags, ',"snippet":', ${SNIPPET_JSON}, '}')`,
    },
    IS_WHOLE,
  )}`

const TAG_ID = '(select t.id from blog_tag t where t.slug = $2::text)'
const HAS_TAG = `($2::text is null or exists (select from blog_post_tag pt where pt.post_id = p.id and pt.tag_id = ${TAG_ID}))`
const IS_CUT = '(select bool_or(is_cut) from size)'

/** A page of the public posts that match a search, the best first. A null tag matches any. */
export const searchPublishedPosts: ReadStatement<
  [search: string, tagSlug: string | null, ...page: PageValues]
> = {
  name: 'blog_search_published',
  text: buildSearchText(2, {
    where: `${isPublic('p')} and ${HAS_TAG}`,
    newest: [
      `select p.id from blog_post p where ${IS_CUT} and $2::text is null and ${isPublic('p')}
        order by p.published_at desc, p.id desc`,
      `select pt.post_id from blog_post_tag pt where ${IS_CUT} and pt.tag_id = ${TAG_ID} and ${isPublic('pt')}
        order by pt.published_at desc, pt.post_id desc`,
    ],
  }),
}

/** A page of all posts that match a search, the best first. A null tag or status matches any. */
export const searchPosts: ReadStatement<
  [search: string, tagSlug: string | null, status: string | null, ...page: PageValues]
> = {
  name: 'blog_search',
  text: buildSearchText(3, {
    where: `($3::text is null or p.status = $3) and ${HAS_TAG}`,
    newest: [
      `select p.id from blog_post p where ${IS_CUT} and $2::text is null and $3::text is null
        order by p.created_at desc, p.id desc`,
      `select p.id from blog_post p where ${IS_CUT} and $2::text is null and p.status = $3::text
        order by p.created_at desc, p.id desc`,
      `select pt.post_id from blog_post_tag pt where ${IS_CUT} and $3::text is null and pt.tag_id = ${TAG_ID}
        order by pt.created_at desc, pt.post_id desc`,
      `select pt.post_id from blog_post_tag pt where ${IS_CUT} and pt.status = $3::text and pt.tag_id = ${TAG_ID}
        order by pt.created_at desc, pt.post_id desc`,
    ],
  }),
}
