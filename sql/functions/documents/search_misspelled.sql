-- Words that differ from a long one by a letter: another one, one more or less, or two that have changed places. Those are looked
-- for that begin or end with nearly half of it, since one of its halves is right.
create or replace function search_misspelled(given text) returns setof text language sql stable as $$
  select word from search_word
  where (word like left(given, (length(given) - 1) / 2) || '%' or word like '%' || right(given, (length(given) - 1) / 2))
    and length(word) between length(given) - 1 and length(given) + 1
    -- Not by the index, which would be asked for each of them.
    and (word || '') like any(array(
      select unnest(array[
        left(given, n - 1) || '_' || substr(given, n + 1), left(given, n - 1) || substr(given, n + 1), left(given, n) || '_' || substr(given, n + 1),
        left(given, n - 1) || substr(given, n + 1, 1) || substr(given, n, 1) || substr(given, n + 2)])
      from generate_series(1, length(given)) n))
  order by word limit 100
$$;
