/** Parts of searches that documents and posts share. */

// Maximum number of matches of a term that a search ranks, in index order. Bounds the cost of a frequent word. If a
// term has more, the search also ranks its matches in the newest texts, up to the same number of texts.
export const MAX_RANKED_MATCHES = 500
// Maximum number of rows to check for a phrase. The index finds rows with all words of the phrase, but does not store
// positions.
const MAX_PHRASE_CANDIDATES = 5000

/** Returns the CTE `term` with the terms of a search, and how many matches of each are ranked. */
export const buildTermCte = (
  owner: string,
  search: string,
  phraseCandidates = MAX_PHRASE_CANDIDATES,
): string => `term as materialized (
    select *, case when is_phrase then ${phraseCandidates} else ${MAX_RANKED_MATCHES} end as most from search_terms(${owner}, ${search})
  )`

/** The CTEs that count the matches of each term in `hit`, and find the rarest term. */
export const SIZE_CTES = `size as materialized (
    select n, most, count(*) filter (where matches) as hits, count(*) > most as is_cut from hit group by n, most
  ), rarest as materialized (
    select * from size order by is_cut, hits, n limit 1
  )`

/**
 * BM25 in parts. `ts_rank` saturates the frequency of a term as BM25 does with k1 = 0.65, and 1 divides by the length of
 * the text. `SCORED_CTES` multiplies by the rarity of the term among the ranked texts. Whole words count most.
 */
export const buildRank = (vector: string, term: string): string =>
  `4 * ts_rank(${vector}, ${term}exact, 1) + ts_rank(${vector}, ${term}wide, 1)`

/** The texts of a search. */
export interface RankedTexts {
  /** Column with the id of what a text belongs to. */
  readonly id: string
  /** Table or query of all texts. */
  readonly texts: string
  /** Returns the query for all texts of an id. */
  readonly textsOf: (id: string) => string
  /** Returns the condition that the text `p` has words, by an index. */
  readonly hasWords: (words: string) => string
}

/**
 * Returns the CTE `ranked` with the ranks of the texts in `hit`. For a term with too many matches, it adds matches in the
 * texts of `newest`. If each term has too many, it adds texts with all words.
 */
export const buildRankedCte = ({ id, texts, textsOf, hasWords }: RankedTexts): string => `ranked as (
    select n, id, ${buildRank('search', '')} as rank from hit where matches
    union all
    select t.n, p.${id}, ${buildRank('p.search', 't.')}
    from size join term t using (n) join newest on size.is_cut
      cross join lateral ${textsOf('newest.id')} p where p.search @@ t.wide
    union all
    select t.n, p.${id}, ${buildRank('p.search', 't.')}
    from term t cross join (
      select * from ${texts} p
      where (select is_cut from rarest) and (select count(*) > 1 from size)
        and ${hasWords(`(select string_agg('(' || words::text || ')', ' & ')::tsquery from term where not negated)`)}
      limit ${MAX_RANKED_MATCHES}) p
    where not t.negated and p.search @@ t.wide
  )`

/** The CTEs that add up the ranks of texts in `ranked`. */
export const SCORED_CTES = `best as (
    select n, id, max(rank) as rank from ranked group by n, id
  ), scored as (
    select id, sum(rank * ln(1 + (most - least(hits, most) + 0.5) / (hits + 0.5)))::real as rank, array_agg(n) as terms
    from best join size using (n) group by id
    having bool_or(n = (select n from rarest))
  )`

/** True if the search saw every match of at least one term, so that the total is exact. */
export const IS_WHOLE =
  'not coalesce((select is_cut from rarest), false) and not exists (select from term where is_partial)'
