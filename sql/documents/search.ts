import { type DOCUMENT_ORDERS, LISTED, type Listed, OF_OWNER } from '../documents.ts'
import { inOrders, type List, listText, type PageValues } from '../lists.ts'
import type { ReadStatement } from '../reader.ts'

// What a search ranks of a term, so that its cost does not follow how often a word occurs: this many of the pages and titles that
// match it, those that the index names first, and if there are more, the pages of as many documents of the owner, newest first.
const MAX_RANKED = 500
// A phrase is looked for in this many pages with its words: the index does not know their places.
const MAX_WITH_WORDS = 5000

// What is shown of where a document matches: its first pages that do, each with some words around the first that matches.
const MAX_HITS = 3
const SNIPPET = 'MaxFragments=1, MinWords=10, MaxWords=25, ShortWord=0, StartSel="", StopSel=""'
// Of a longer page: finding the words again takes a second for two million characters.
const SNIPPET_CHARACTERS = 200_000

// Its words are parted as those that were indexed, and its marks stay: each is between characters that no text shows.
const snippet = (text: string, query: string): string =>
  `translate(ts_headline('folded', words_parted(${text}, E'\\x01\\\\1\\x01'), ${query}, '${SNIPPET}'), E'\\x01', '')`

/** What `words` of a search's terms are looked for in. */
const owned = (row: string): string => `owned_vector(${row}.owner_id, ${row}.search)`

// One document after the other, by key: without `offset 0` it could be joined with all pages.
const pagesOf = (document: string): string =>
  `(select document_id, search from document_page where document_id = ${document} offset 0)`

/** What may order what a search finds. */
export const SEARCH_ORDERS = {
  rank: { 'found.rank': 'real', 'found.id': 'bigint' },
  received_at: { 'found.id': 'bigint' },
  document_date: { 'found.day': 'date', 'found.id': 'bigint' },
  title: { 'found.title': 'text', 'found.id': 'bigint' },
} as const satisfies Record<keyof typeof DOCUMENT_ORDERS | 'rank', List['order']>

const HITS = `(
  select coalesce(json_agg(json_build_object('page_number', hit.page_number, 'snippet',
    ${snippet(`unhyphenated(left(hit.text, ${SNIPPET_CHARACTERS}))`, 'sought.query')}) order by hit.page_number), '[]')
  from (select string_agg('(' || wide::text || ')', ' | ')::tsquery as query from term where not negated) sought
    cross join lateral (
      select p.page_number, p.text from document_page p where p.document_id = d.id and p.search @@ sought.query
      order by p.page_number limit ${MAX_HITS}) hit)`

// The documents that match, each with its rank.
const FOUND = `
  with term as materialized (
    select *, case when is_phrase then ${MAX_WITH_WORDS} else ${MAX_RANKED} end as most from search_terms($1::int, $7)
  ), hit as materialized (
    select t.n, t.most, t.exact, t.wide, possible.*, not t.is_phrase or possible.search @@ t.wide as matches
    from term t cross join lateral (
      (select d.id, d.search from document d
        where ${owned('d')} @@ t.words and d.deleted_at is null limit t.most + 1)
      union all
      (select p.document_id, p.search from document_page p where ${owned('p')} @@ t.words limit t.most + 1)
    ) possible
    where not t.negated
  ), size as materialized (
    select n, count(*) filter (where matches) as hits, count(*) > most as is_cut from hit group by n, most
  ), rarest as materialized (
    select * from size order by is_cut, hits, n limit 1
  ), newest as materialized (
    select d.id from document d where ${OF_OWNER} order by d.id desc limit ${MAX_RANKED}
  ), ranked as (
    select n, id, 4 * ts_rank(search, exact) + ts_rank(search, wide) as rank from hit where matches
    union all
    select t.n, p.document_id, 4 * ts_rank(p.search, t.exact) + ts_rank(p.search, t.wide)
    from size join term t using (n) join newest on size.is_cut
      cross join lateral ${pagesOf('newest.id')} p where p.search @@ t.wide
    union all
    select t.n, p.document_id, 4 * ts_rank(p.search, t.exact) + ts_rank(p.search, t.wide)
    from term t cross join (
      select * from document_page p
      where (select is_cut from rarest) and (select count(*) > 1 from size)
        and ${owned('p')} @@ (select string_agg('(' || words::text || ')', ' & ')::tsquery from term where not negated)
      limit ${MAX_RANKED}) p
    where not t.negated and p.search @@ t.wide
  ), best as (
    select n, id, max(rank) as rank from ranked group by n, id
  ), scored as (
    select id, sum(rank)::real as rank, array_agg(n) as terms from best group by id
    having bool_or(n = (select n from rarest))
  ), found as materialized (
    select d.id, scored.rank, d.day, lower(d.title) as title from scored join document d using (id)
    where ${LISTED} and not exists (
      select from term t left join size using (n) where not t.negated and t.n <> all(scored.terms)
        and not (coalesce(size.is_cut, false) and (d.search @@ t.wide
          or exists (select from ${pagesOf('d.id')} p where p.search @@ t.wide)))
    ) and not exists (
      select from term t where t.negated and (d.search @@ t.exact
        or exists (select from ${pagesOf('d.id')} p where p.search @@ t.exact)))
  )`

/**
 * A page of the documents that match a search, with the pages that do if `hits`. Every term occurs somewhere in the document's title, note, tags or
 * pages; the whole word counts most, then its beginning or part, and the title more than the text. The total is exact if all
 * that matches one of the terms was looked at, so that nothing else can match.
 */
export const searchDocuments = inOrders(
  SEARCH_ORDERS,
  (
    column,
    order,
    direction,
  ): ReadStatement<[...Listed, search: string, hits: boolean, ...page: PageValues]> => ({
    name: `documents_search_${column}_${direction}`,
    text: `
    ${FOUND}
    ${listText(
      'items',
      {
        table: 'found',
        row: 'found',
        parameters: 8,
        where: 'true',
        order,
        direction,
        join: 'join document d on d.id = found.id',
        item: `case when $8::boolean then concat(left(d.json, -1), ',"hits":', ${HITS}, '}') else d.json end`,
      },
      'not coalesce((select is_cut from rarest), false)',
    )}`,
  }),
)
