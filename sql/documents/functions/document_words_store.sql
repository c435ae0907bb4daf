create or replace function document_words_store() returns trigger language plpgsql as $$
begin
  perform search_words_store(array_agg(owner_id), array_agg(search)) from changed;
  return null;
end $$;

create or replace trigger search_words_inserted after insert on document referencing new table as changed
  for each statement execute function document_words_store();

create or replace trigger search_words_updated after update on document referencing new table as changed
  for each statement execute function document_words_store();
