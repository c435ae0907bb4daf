-- Words that differ from a long one by one edit: a letter replaced, added, removed, or swapped with its neighbour. At
-- least one half of the word is right, so candidates share its beginning or its end.
create or replace function search_misspelled(given text) returns setof text language sql stable as $$
  select word from search_word
  where (word like left(given, (length(given) - 1) / 2) || '%' or word like '%' || right(given, (length(given) - 1) / 2))
    and length(word) between length(given) - 1 and length(given) + 1
    -- The concatenation bypasses the index, which would run one scan per pattern.
    and (word || '') like any(array(
      select unnest(array[
        left(given, n - 1) || '_' || substr(given, n + 1), left(given, n - 1) || substr(given, n + 1), left(given, n) || '_' || substr(given, n + 1),
        left(given, n - 1) || substr(given, n + 1, 1) || substr(given, n, 1) || substr(given, n + 2)])
      from generate_series(1, length(given)) n))
  order by word limit 100
$$;
