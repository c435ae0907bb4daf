import { buildListText, type List, mapOrders, type PageValues } from '../reads/lists.ts'
import type { ReadStatement } from '../reads/reader.ts'
import {
  buildRankedCte,
  buildTermCte,
  IS_WHOLE,
  MAX_RANKED_MATCHES,
  SCORED_CTES,
  SIZE_CTES,
} from '../search/rank.ts'
import {
  type DOCUMENT_ORDERS,
  LIST_CONDITION,
  LIVE_DOCUMENTS_CONDITION,
  type ListFilters,
} from './documents.ts'

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
  with ${buildTermCte('$1::int', '$7')}, hit as materialized (
    select t.n, t.most, t.exact, t.wide, possible.*, not t.is_phrase or possible.search @@ t.wide as matches
    from term t cross join lateral (
      (select d.id, d.search from document d
        where ${buildOwnedVector('d')} @@ t.words and d.deleted_at is null limit t.most + 1)
      union all
      (select p.document_id, p.search from ${PAGES_QUERY} p where ${buildOwnedVector('p')} @@ t.words limit t.most + 1)
    ) possible
    where not t.negated
  ), ${SIZE_CTES}, newest as materialized (
    select d.id from document d where ${LIVE_DOCUMENTS_CONDITION} order by d.id desc limit ${MAX_RANKED_MATCHES}
  ), ${buildRankedCte({ id: 'document_id', texts: PAGES_QUERY, textsOf: buildPagesQuery, hasWords: (words) => `${buildOwnedVector('p')} @@ ${words}` })}, ${SCORED_CTES}, found as materialized (
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
      IS_WHOLE,
    )}`,
  }),
)
