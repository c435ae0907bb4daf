-- Stores the words of vectors with their owners, and refreshes `seen_at` every three days. Inserts in word order, so that
-- two transactions never deadlock. Known words cost one lookup for all vectors together. Omits words that `search_terms`
-- never looks for by a part: short ones, and pairs of characters.
create or replace function search_words_store(owners integer[], vectors tsvector[]) returns void language sql
  set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
  insert into search_word as w (owner_id, word)
  select owner, lexeme from (
    select distinct coalesce(owner, 0) as owner, lexeme from unnest(owners, vectors) given (owner, vector), unnest(tsvector_to_array(vector)) lexeme offset 0) words
  where case when lexeme ~ '[^\x01-\x7f]' then not search_is_pair(lexeme) else length(lexeme) > 2 end
    and not exists (select from search_word known
      where known.owner_id = owner and known.word = lexeme and known.seen_at > now() - interval '3 days')
  order by owner, lexeme collate "C"
  on conflict (owner_id, word) do update set seen_at = now() where w.seen_at < now() - interval '3 days'
$$;
