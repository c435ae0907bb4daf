-- Looks for the words that were last seen `keep_days` ago, at most `most` of them, and deletes those that nothing contains any
-- more. Who writes a text marks its words first, and has ended within the 3 days for which `search_words_of` relies on a mark:
-- so a word that is old when it is deleted is in no text that is being written.
create or replace function search_words_sweep(keep_days integer, most integer, out looked integer, out gone integer)
  language plpgsql
  set enable_seqscan = off
as $$
declare
  before constant timestamptz := now() - make_interval(days => greatest(keep_days, 7));
  due constant text[] := array(select word from search_word where seen_at < before order by seen_at limit most);
  used text[];
begin
  used := array(select word from unnest(due) word, lateral (select quoted_lexeme(word)::tsquery as query) quoted
    where exists (select from document_page where search @@ query)
      or exists (select from document where search @@ query and deleted_at is null));
  update search_word set seen_at = now() where word = any(used);
  delete from search_word where word = any(due) and word <> all(used) and seen_at < before;
  get diagnostics gone = row_count;
  looked := cardinality(due);
end $$;
