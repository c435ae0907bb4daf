-- Returns the query for words in sequence; null without words. With `is_prefix`, the last word may be the beginning of
-- another one. So it always may in a script without spaces, see `search_text`.
create or replace function search_phrase(words text[], is_prefix boolean) returns tsquery language sql immutable parallel safe as $$
  select (string_agg('''' || left(word, 100) || '''', ' <-> ' order by n)
    || case when is_prefix or bool_or(n = cardinality(words) and search_is_pair(word)) then ':*' else '' end)::tsquery
  from unnest(words) with ordinality given (word, n) where word <> ''
$$;
