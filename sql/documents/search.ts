import { buildListText, type List, mapOrders, type PageValues } from '../reads/lists.ts'
import type { ReadStatement } from '../reads/reader.ts'
import {
  type DOCUMENT_ORDERS,
  LIST_CONDITION,
  LIVE_DOCUMENTS_CONDITION,
  type ListFilters,
} from './documents.ts'

// Maximum number of matches of a term that a search ranks, in index order. Bounds the cost of a frequent word. If a
// term has more, the search also ranks its matches in the owner's newest documents, up to the same number of documents.
const MAX_RANKED_MATCHES = 500
// Maximum number of rows to check for a phrase. The index finds rows with all words of the phrase, but does not store
// positions.
const MAX_PHRASE_CANDIDATES = 5000

// Snippets per document, from its first matching pages. Each has the words around the first match.
const MAX_SNIPPETS = 3
const SNIPPET_OPTIONS = 'MaxFragments=1, MinWords=10, MaxWords=25, ShortWord=0, StartSel="", StopSel=""'
// Maximum number of characters of a page to search for snippets. Highlighting two million characters takes a second.
const MAX_SNIPPET_SOURCE_CHARACTERS = 200_000

// Splits words as the index does, but keeps punctuation. Each mark is wrapped in U+0001, which no text contains, and
// which `translate` then removes.
const buildSnippet = (text: string, query: string): string =>
  `translate(ts_headline('folded', separate_words(${text}, E'\\x01\\\\1\\x01'), ${query}, '${SNIPPET_OPTIONS}'), E'\\x01', '')`

/** Returns the expression for the vector that the `words` of a search term must match. */
const buildOwnedVector = (row: string): string => `owned_vector(${row}.owner_id, ${row}.search)`

// `offset 0` forces a lookup by key for each document. The planner might otherwise join all pages.
const buildPagesQuery = (document: string): string =>
  `(select document_id, search from document_page where document_id = ${document} offset 0)`

/** Sort orders of search results. */
export const SEARCH_ORDERS = {
  rank: { 'found.rank': 'real', 'found.id': 'bigint' },
  received_at: { 'found.id': 'bigint' },
  document_date: { 'found.day': 'date', 'found.id': 'bigint' },
  title: { 'found.title': 'text', 'found.id': 'bigint' },
  byte_size: { 'found.byte_size': 'bigint', 'found.id': 'bigint' },
  page_count: { 'found.page_count': 'bigint', 'found.id': 'bigint' },
} as const satisfies Record<keyof typeof DOCUMENT_ORDERS | 'rank', List['order']>

const HITS_JSON = `(
  select coalesce(json_agg(json_build_object('page_number', hit.page_number, 'snippet',
    ${buildSnippet(`join_hyphenated(left(hit.text, ${MAX_SNIPPET_SOURCE_CHARACTERS}))`, 'sought.query')}) order by hit.page_number), '[]')
  from (select string_agg('(' || wide::text || ')', ' | ')::tsquery as query from term where not negated) sought
    cross join lateral (
      select p.page_number, p.text from document_page p where p.document_id = d.id and p.search @@ sought.query
      order by p.page_number limit ${MAX_SNIPPETS}) hit)`

// Finds the matching documents and their ranks.
const FOUND_DOCUMENTS_CTE = `
  with term as materialized (
    select *, case when is_phrase then ${MAX_PHRASE_CANDIDATES} else ${MAX_RANKED_MATCHES} end as most from search_terms($1::int, $7)
  ), hit as materialized (
    select t.n, t.most, t.exact, t.wide, possible.*, not t.is_phrase or possible.search @@ t.wide as matches
    from term t cross join lateral (
      (select d.id, d.search from document d
        where ${buildOwnedVector('d')} @@ t.words and d.deleted_at is null limit t.most + 1)
      union all
      (select p.document_id, p.search from document_page p where ${buildOwnedVector('p')} @@ t.words limit t.most + 1)
    ) possible
    where not t.negated
  ), size as materialized (
    select n, count(*) filter (where matches) as hits, count(*) > most as is_cut from hit group by n, most
  ), rarest as materialized (
    select * from size order by is_cut, hits, n limit 1
  ), newest as materialized (
    select d.id from document d where ${LIVE_DOCUMENTS_CONDITION} order by d.id desc limit ${MAX_RANKED_MATCHES}
  ), ranked as (
    select n, id, 4 * ts_rank(search, exact) + ts_rank(search, wide) as rank from hit where matches
    union all
    select t.n, p.document_id, 4 * ts_rank(p.search, t.exact) + ts_rank(p.search, t.wide)
    from size join term t using (n) join newest on size.is_cut
      cross join lateral ${buildPagesQuery('newest.id')} p where p.search @@ t.wide
    union all
    select t.n, p.document_id, 4 * ts_rank(p.search, t.exact) + ts_rank(p.search, t.wide)
    from term t cross join (
      select * from document_page p
      where (select is_cut from rarest) and (select count(*) > 1 from size)
        and ${buildOwnedVector('p')} @@ (select string_agg('(' || words::text || ')', ' & ')::tsquery from term where not negated)
      limit ${MAX_RANKED_MATCHES}) p
    where not t.negated and p.search @@ t.wide
  ), best as (
    select n, id, max(rank) as rank from ranked group by n, id
  ), scored as (
    select id, sum(rank)::real as rank, array_agg(n) as terms from best group by id
    having bool_or(n = (select n from rarest))
  ), found as materialized (
    select d.id, scored.rank, d.day, lower(d.title) as title, d.byte_size, coalesce(d.page_count, 0) as page_count
    from scored join document d using (id)
    where ${LIST_CONDITION} and not exists (
      select from term t left join size using (n) where not t.negated and t.n <> all(scored.terms)
        and not (coalesce(size.is_cut, false) and (d.search @@ t.wide
          or exists (select from ${buildPagesQuery('d.id')} p where p.search @@ t.wide)))
    ) and not exists (
      select from term t where t.negated and (d.search @@ t.exact
        or exists (select from ${buildPagesQuery('d.id')} p where p.search @@ t.exact)))
  )`

/**
 * A page of the documents that match a search. `hits` adds snippets of their matching pages. Every term must occur in a
 * document's title, note, tags or pages. Whole words rank above prefixes and parts, the title above the text. The total
 * is exact if the search saw every match of at least one term.
 */
export const searchDocuments = mapOrders(
  SEARCH_ORDERS,
  (
    column,
    order,
    direction,
  ): ReadStatement<[...ListFilters, search: string, hits: boolean, ...page: PageValues]> => ({
    name: `documents_search_${column}_${direction}`,
    text: `
    ${FOUND_DOCUMENTS_CTE}
    ${buildListText(
      'items',
      {
        table: 'found',
        row: 'found',
        parameters: 8,
        where: 'true',
        order,
        direction,
        join: 'join document d on d.id = found.id',
        item: `case when $8::boolean then concat(left(d.json, -1), ',"hits":', ${HITS_JSON}, '}') else d.json end`,
      },
      'not coalesce((select is_cut from rarest), false)',
    )}`,
  }),
)
