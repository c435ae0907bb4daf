-- Stores the words of vectors, and refreshes `seen_at` every three days. Inserts in word order, so that two
-- transactions never deadlock. Known words cost one lookup for all vectors together.
create or replace function search_words_store(vectors tsvector[]) returns void language sql
  set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
  insert into search_word (word)
  select lexeme from (
    select distinct lexeme from unnest(vectors) vector, unnest(tsvector_to_array(vector)) lexeme offset 0) words
  where length(lexeme) <= 100
    and not exists (select from search_word where word = lexeme and seen_at > now() - interval '3 days')
  order by lexeme collate "C"
  on conflict (word) do update set seen_at = now() where search_word.seen_at < now() - interval '3 days'
$$;
