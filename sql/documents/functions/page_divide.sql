-- Stores the search vectors of what follows the first 16,000 characters of a page. Parts overlap by 200 characters, so that
-- phrases are found on their borders.
create or replace function page_divide() returns trigger language plpgsql as $$
begin
  if tg_op = 'UPDATE' then
    delete from document_page_part where document_id = new.document_id and page_number = new.page_number;
  end if;
  insert into document_page_part (document_id, page_number, part, owner_id, search)
  select new.document_id, new.page_number, n, new.owner_id, search_vector(substr(new.text, n * 16000 - 199, 16200))
  from generate_series(1, (length(new.text) - 1) / 16000) n;
  perform search_words_store(array_agg(owner_id), array_agg(search))
  from document_page_part where document_id = new.document_id and page_number = new.page_number;
  return null;
end $$;

create or replace trigger page_divide_insert after insert on document_page
  for each row when (length(new.text) > 16000) execute function page_divide();

create or replace trigger page_divide_update after update of text on document_page
  for each row when (new.text <> old.text and (length(new.text) > 16000 or length(old.text) > 16000)) execute function page_divide();
