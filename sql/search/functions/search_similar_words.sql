-- Finds an owner's words that differ from a long one by one edit: a letter replaced, added, removed, or swapped with its
-- neighbour. At least one half of the word has no error, so candidates share its beginning or its end.
create or replace function search_similar_words(owner integer, term text) returns setof text language sql stable as $$
  select word from search_word
  where owner_id = coalesce(owner, 0)
    and (word like left(term, (length(term) - 1) / 2) || '%' or word like '%' || right(term, (length(term) - 1) / 2))
    and length(word) between length(term) - 1 and length(term) + 1
    -- The concatenation bypasses the index, which would run one scan per pattern.
    and (word || '') like any(array(
      select unnest(array[
        left(term, n - 1) || '_' || substr(term, n + 1), left(term, n - 1) || substr(term, n + 1), left(term, n) || '_' || substr(term, n + 1),
        left(term, n - 1) || substr(term, n + 1, 1) || substr(term, n, 1) || substr(term, n + 2)])
      from generate_series(1, length(term)) n))
  order by word limit 100
$$;
