-- Stores the search vectors of the further parts of a page's text, see `page_part`.
create or replace function page_divide() returns trigger language plpgsql as $$
begin
  if tg_op = 'UPDATE' then
    delete from document_page_part where document_id = new.document_id and page_number = new.page_number;
  end if;
  insert into document_page_part (document_id, page_number, part, owner_id, search)
  select new.document_id, new.page_number, n, new.owner_id, search_vector(page_part(new.text, n))
  from generate_series(1, page_last_part(new.text)) n;
  return null;
end $$;

create or replace trigger page_divide_insert after insert on document_page
  for each row when (page_last_part(new.text) > 0) execute function page_divide();

create or replace trigger page_divide_update after update of text on document_page
  for each row when (new.text <> old.text and (page_last_part(new.text) > 0 or page_last_part(old.text) > 0)) execute function page_divide();
