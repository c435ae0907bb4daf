-- Returns the terms of a text or a query: the stems of its words in order, without common words. A search ranks
-- `common_terms` only if nothing else is asked. These are of common words, and of the characters of scripts that are indexed
-- by pairs. A word of more than 64 characters is data, such as a key or an encoded picture.
-- A set of one row, which PostgreSQL inlines, unlike a row.
create or replace function rag_terms(content text, dictionary regdictionary)
returns table (terms integer[], common_terms integer[]) language sql stable parallel safe as $$
  select
    coalesce(array_agg(case when is_pair then rag_term(word)
      else rag_term(coalesce((ts_lexize(dictionary, word))[1], word)) end order by n)
      filter (where not is_common), '{}'),
    coalesce(array_agg(distinct rag_term(case when is_pair then left(word, 1) else word end)) filter (where is_common or is_pair), '{}')
  from (
    select word, n, is_pair, case when is_pair then length(word) = 1 else search_is_common(word, dictionary) end as is_common
    from unnest(search_index_words(content)) with ordinality given (word, n)
      cross join lateral (select octet_length(word) > length(word) and search_is_pair(word)) script (is_pair)
    where length(word) between 1 and 64 offset 0) words
$$;
