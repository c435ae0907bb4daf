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

// Snippets per document, from its first matching pages.
const MAX_SNIPPETS = 3

/** Returns the expression for the vector that the `words` of a search term must match. */
const buildOwnedVector = (row: string): string => `owned_vector(${row}.owner_id, ${row}.search)`

// All vectors of pages: those of their beginnings, and those of their further parts.
const PAGES_QUERY = `(select document_id, owner_id, page_number, 0 as part, search from document_page
    union all select document_id, owner_id, page_number, part, search from document_page_part)`

// `offset 0` forces a lookup by key for each document. The planner might otherwise join all pages.
const buildPagesQuery = (document: string): string =>
  `(select * from ${PAGES_QUERY} texts where document_id = ${document} offset 0)`

// BM25 in parts. `ts_rank` saturates the frequency of a term as BM25 does with k1 = 0.65, and 1 divides by the length of the
// text. `scored` multiplies by the rarity of the term among the ranked texts. Whole words count most.
const buildRank = (vector: string, term: string): string =>
  `4 * ts_rank(${vector}, ${term}exact, 1) + ts_rank(${vector}, ${term}wide, 1)`

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
    search_snippet(p.text, hit.part, hit.search, sought.query)) order by hit.page_number), '[]')
  from (select search_any_of(array_agg(wide)) as query from term where not negated) sought
    cross join lateral (
      select distinct on (page_number) page_number, part, search from ${buildPagesQuery('d.id')} texts
      where search @@ sought.query order by page_number, part limit ${MAX_SNIPPETS}) hit
    join document_page p on p.document_id = d.id and p.page_number = hit.page_number)`

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
      (select p.document_id, p.search from ${PAGES_QUERY} p where ${buildOwnedVector('p')} @@ t.words limit t.most + 1)
    ) possible
    where not t.negated
  ), size as materialized (
    select n, most, count(*) filter (where matches) as hits, count(*) > most as is_cut from hit group by n, most
  ), rarest as materialized (
    select * from size order by is_cut, hits, n limit 1
  ), newest as materialized (
    select d.id from document d where ${LIVE_DOCUMENTS_CONDITION} order by d.id desc limit ${MAX_RANKED_MATCHES}
  ), ranked as (
    select n, id, ${buildRank('search', '')} as rank from hit where matches
    union all
    select t.n, p.document_id, ${buildRank('p.search', 't.')}
    from size join term t using (n) join newest on size.is_cut
      cross join lateral ${buildPagesQuery('newest.id')} p where p.search @@ t.wide
    union all
    select t.n, p.document_id, ${buildRank('p.search', 't.')}
    from term t cross join (
      select * from ${PAGES_QUERY} p
      where (select is_cut from rarest) and (select count(*) > 1 from size)
        and ${buildOwnedVector('p')} @@ (select string_agg('(' || words::text || ')', ' & ')::tsquery from term where not negated)
      limit ${MAX_RANKED_MATCHES}) p
    where not t.negated and p.search @@ t.wide
  ), best as (
    select n, id, max(rank) as rank from ranked group by n, id
  ), scored as (
    select id, sum(rank * ln(1 + (most - least(hits, most) + 0.5) / (hits + 0.5)))::real as rank, array_agg(n) as terms
    from best join size using (n) group by id
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
      'not coalesce((select is_cut from rarest), false) and not exists (select from term where is_partial)',
    )}`,
  }),
)
