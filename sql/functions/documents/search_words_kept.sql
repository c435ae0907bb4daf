-- In the order of the words, so that two transactions never deadlock.
create or replace function search_words_kept() returns trigger language plpgsql as $$
begin
  insert into search_word (word)
  select distinct lexeme from changed, unnest(changed.search) where length(lexeme) <= 100 order by 1
  on conflict do nothing;
  return null;
end $$;

create or replace trigger search_words_inserted after insert on document referencing new table as changed
  for each statement execute function search_words_kept();

create or replace trigger search_words_updated after update on document referencing new table as changed
  for each statement execute function search_words_kept();
